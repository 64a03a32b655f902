import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { instantOf } from '@gamenet/schemas'
import { writeTitleCounts } from './count-files.js'
import { type Conditions, type Measurement, quantile, type Result, scaled } from './measurement.js'
import { processorMs } from './process-figures.js'
import { importTitlesAndNetwork, minuteNow, type QuietService, startQuietService, titleIds } from './quiet-service.js'

const MINUTES = 10_000
const MINUTE_MS = 60_000
const RUNS = 2

/** `gamenet import` of a file of 2 M counts against a running service, from its start to its end, when all is readable. */
export const importSpeed: Measurement = {
  name: 'import',
  claim: 'an import is readable at 100,000 events a second or more, embedded',
  async run(conditions) {
    const service = await startQuietService(conditions.directory)
    try {
      await importTitlesAndNetwork(service, conditions.directory)
      const results: Result[] = []
      // Each file has minutes of its own, so that no run finds anything that another one stored.
      let endMs = minuteNow()
      for (const format of ['csv.gz', 'ndjson'] as const) {
        const speeds: number[] = []
        for (let run = 0; run < RUNS; run += 1) {
          const minutes = scaled(MINUTES, conditions.scale, 100)
          endMs -= minutes * MINUTE_MS
          speeds.push(await importOne(service, conditions, { format, firstMs: endMs, minutes }))
        }
        results.push({
          what: `events a second, ${format}, file to readable`,
          measured: quantile(speeds, 0.5),
          unit: '/s',
          reach: { bound: 'at least', value: 100_000, of: 'measured' },
          detail: `slower of ${RUNS} runs; the other ${Math.round(Math.max(...speeds)).toLocaleString('en-US')} /s`
        })
      }
      return results
    } finally {
      await service.remove()
    }
  }
}

type File = { readonly format: 'csv.gz' | 'ndjson'; readonly firstMs: number; readonly minutes: number }

async function importOne(service: QuietService, conditions: Conditions, file: File): Promise<number> {
  const { firstMs, minutes, format } = file
  const path = join(conditions.directory, `import-${firstMs}.${format}`)
  await writeTitleCounts(path, format, { titleIds, firstMs, minutes })
  const events = minutes * titleIds.length
  const begun = performance.now()
  const processor = await processorMs(service.pid)
  await service.importFile('title-count', path)
  const seconds = (performance.now() - begun) / 1000
  const cost = ((await processorMs(service.pid)) - processor) * 1000
  await requireReadable(service, firstMs, minutes)
  const size = ((await stat(path)).size / 1e6).toFixed(1)
  conditions.note(
    `${format}: ${events} events (${size} MB) in ${seconds.toFixed(1)} s, processor time ${(cost / events).toFixed(1)} µs an event`
  )
  return events / seconds
}

/** The last title's last hours must be there, sample by sample. */
async function requireReadable({ apiUrl }: QuietService, firstMs: number, minutes: number): Promise<void> {
  const titleId = titleIds.at(-1) ?? ''
  const toMs = firstMs + minutes * MINUTE_MS
  const window = `from=${instantOf(toMs - 100 * MINUTE_MS)}&to=${instantOf(toMs)}&resolution=raw`
  const response = await fetch(`${apiUrl}/api/title/${titleId}/online-users/history?${window}`)
  const points: unknown = await response.json()
  if (!Array.isArray(points) || points.length !== 100) {
    throw new Error(`the import has ended, but ${JSON.stringify(points).slice(0, 200)} is not its last 100 minutes`)
  }
}
