import { join } from 'node:path'
import { instantOf } from '@gamenet/schemas'
import { writeTitleCounts } from './count-files.js'
import { type Conditions, figure, type Measurement, quantile, type Result, scaled } from './measurement.js'
import { processorMs } from './process-figures.js'
import { importTitlesAndNetwork, minuteNow, type QuietService, startQuietService, titleIds } from './quiet-service.js'

const MINUTES = 10_000
const MINUTE_MS = 60_000
const RUNS = 5

/** `gamenet import` of 2 M counts into a running service; the command ends when all rows are readable. */
export const importSpeed: Measurement = {
  name: 'import',
  claim: 'imported events are readable at 100,000 a second or more, embedded',
  async run(conditions) {
    const service = await startQuietService(conditions.directory)
    try {
      await importTitlesAndNetwork(service, conditions.directory)
      const results: Result[] = []
      // Each file covers its own minutes, so that no run imports rows that another one has stored.
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
          target: { bound: 'at least', value: 100_000, of: 'measured' },
          detail: `median of ${RUNS} runs; ${figure(Math.min(...speeds))} to ${figure(Math.max(...speeds))} /s`
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
  conditions.note(
    `${format}: ${events} events in ${seconds.toFixed(1)} s, processor time ${(cost / events).toFixed(1)} µs per event`
  )
  return events / seconds
}

/** Requires the samples of the last title in the last 100 minutes. */
async function requireReadable({ apiUrl }: QuietService, firstMs: number, minutes: number): Promise<void> {
  const titleId = titleIds.at(-1) ?? ''
  const toMs = firstMs + minutes * MINUTE_MS
  const window = `from=${instantOf(toMs - 100 * MINUTE_MS)}&to=${instantOf(toMs)}&resolution=raw`
  const response = await fetch(`${apiUrl}/api/title/${titleId}/online-users/history?${window}`)
  const points: unknown = await response.json()
  if (!Array.isArray(points) || points.length !== 100) {
    throw new Error(`expected the import's last 100 minutes, got ${JSON.stringify(points).slice(0, 200)}`)
  }
}
