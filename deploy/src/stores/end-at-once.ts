import { writeSync } from 'node:fs'

/**
 * Ends the process, which a supervisor starts again. `process.exit` would wait for threads of engines, which may
 * hang. The signal differs from the SIGKILL of an operator, after which `npm start` starts nothing.
 */
export function endAtOnce(sentence: string): void {
  try {
    writeSync(2, `${sentence} The process ends; nothing acknowledged is lost. Start it again if no supervisor does.\n`)
  } finally {
    process.kill(process.pid, 'SIGALRM')
    // The first process of a container ignores signals that it does not handle.
    process.abort()
  }
}
