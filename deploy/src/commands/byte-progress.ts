import cliProgress from 'cli-progress'
import { barFormat } from './bar-format.js'
import type { Terminal } from './terminal.js'

const PLAIN_PROGRESS_MS = 5000

/** How much of so many bytes was copied: a bar on a terminal, a line now and then elsewhere. */
export function showBytes(
  { errors }: Terminal,
  isShown: boolean
): { update(what: string, bytes: number, bytesTotal: number): void; stop(): void } {
  if (!isShown) return { update: () => {}, stop: () => {} }
  if (!errors.isTTY) {
    let saidAt = Date.now()
    const update = (what: string, bytes: number, bytesTotal: number) => {
      if (Date.now() - saidAt < PLAIN_PROGRESS_MS) return
      saidAt = Date.now()
      errors.write(`${what}: ${megabytes(bytes)} of ${megabytes(bytesTotal)} MB\n`)
    }
    return { update, stop: () => {} }
  }
  const bar = new cliProgress.SingleBar(
    {
      format: barFormat('{what} {bar} {percentage} % | {done} of {all} MB | {eta_formatted} left'),
      clearOnComplete: true,
      stream: errors
    },
    cliProgress.Presets.shades_classic
  )
  bar.start(1, 0, { what: '', done: '0', all: '?' })
  const update = (what: string, bytes: number, bytesTotal: number) => {
    bar.setTotal(Math.max(1, bytesTotal))
    bar.update(bytes, { what, done: megabytes(bytes), all: megabytes(bytesTotal) })
  }
  return { update, stop: () => bar.stop() }
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1)
}
