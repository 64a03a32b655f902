import { runProgram } from './commands/program.js'
import { keepTickShape } from './wiring/tick-shape.js'

keepTickShape()
// Files and directories are private: they contain seal keys, profiles and events of people.
process.umask(0o077)
// A reader of the output may close it, as `head` does; the command continues.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}
// A process whose event loop becomes empty before its command has ended has failed.
process.exitCode = 1
process.exitCode = await runProgram({
  args: process.argv.slice(2),
  environment: process.env,
  input: process.stdin,
  output: process.stdout,
  errors: process.stderr
})
