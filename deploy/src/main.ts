import { runProgram } from './program.js'

// Files and directories are private: they contain seal keys, profiles and events of people.
process.umask(0o077)
// A reader of the output may close it, as `head` does; the command continues.
process.stderr.on('error', () => undefined)
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return
  process.stderr.write(`Standard output cannot be written (${error.message}).\n`)
  process.exit(1)
})
// A process whose event loop becomes empty before its command has ended has failed.
process.exitCode = 1
process.exitCode = await runProgram({
  args: process.argv.slice(2),
  environment: process.env,
  input: process.stdin,
  output: process.stdout,
  errors: process.stderr
})
