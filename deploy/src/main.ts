import { runProgram } from './commands/program.js'

// A process that has nothing left to wait for before its command has ended has failed.
process.exitCode = 1
process.exitCode = await runProgram({
  args: process.argv.slice(2),
  environment: process.env,
  output: process.stdout,
  errors: process.stderr
})
