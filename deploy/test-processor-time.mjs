/*
 * Loaded into each test file's process: prints at its end how much processor time it and its children that have ended took.
 * On Linux alone.
 */
import { readFileSync, writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/** Of /proc/self/stat, counted behind the name of the program; in ticks of 10 ms. */
const [UTIME, CUTIME] = [11, 13]

if (isMainThread && process.platform === 'linux') {
  process.on('exit', () => {
    const fields = readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /, '')
      .split(' ')
    const ticks = fields.slice(UTIME, CUTIME + 2).reduce((sum, field) => sum + Number(field), 0)
    writeSync(1, `# processor seconds: ${ticks / 100}\n`)
  })
}
