import { runProgram } from './commands/program.js'

process.exitCode = await runProgram({
  args: process.argv.slice(2),
  environment: process.env,
  output: process.stdout,
  errors: process.stderr
})
