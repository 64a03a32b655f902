/*
 * Loaded into each process of test files: prints at its end how long it took, and how much processor time it and its
 * children that have ended took.
 */
import { readFileSync, writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/** Of /proc/self/stat, counted behind the name of the program; in ticks of 10 ms. */
const [UTIME, CUTIME] = [11, 13]

if (isMainThread) process.on('exit', () => writeSync(1, `# ${timeTaken()}\n`))

/** Of this process so far; the processor time is 0 outside Linux. */
export function timeTaken() {
  return `seconds: ${performance.now() / 1000}, processor seconds: ${processorSeconds()}`
}

function processorSeconds() {
  if (process.platform !== 'linux') return 0
  const fields = readFileSync('/proc/self/stat', 'latin1')
    .replace(/^.*\) /, '')
    .split(' ')
  return fields.slice(UTIME, CUTIME + 2).reduce((sum, field) => sum + Number(field), 0) / 100
}
