import { runProgram } from './commands/program.js'

// Whoever read the output may leave, as `head` does: the work goes on.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}
// A process that has nothing left to wait for before its command has ended has failed.
process.exitCode = 1
process.exitCode = await runProgram({
  args: process.argv.slice(2),
  environment: process.env,
  input: process.stdin,
  output: process.stdout,
  errors: process.stderr
})
