import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { instantOf } from '@gamenet/schemas'
import { request } from 'undici'
import { concurrentAnswers } from './concurrent-answers.js'
import { figure, type Measurement, type Result, scaled } from './measurement.js'
import { residentBytes, watchResident } from './process-figures.js'
import {
  importTitleCounts,
  importTitlesAndNetwork,
  minuteNow,
  type QuietService,
  startQuietService
} from './quiet-service.js'

const ROWS = 2_000_000
const TITLE = '4d530ffe'
const MINUTE_MS = 60_000
const WATCH_MS = 20
const MIB = 1024 * 1024
const MEMORY_MIB_MAX = 64
const ROUNDS = { rounds: 3, ms: 3500, timesIdle: 2 }
const FORMATS = [
  { format: 'parquet', rowsPerSecond: 1_500_000 },
  { format: 'arrow', rowsPerSecond: 4_000_000 },
  { format: 'csv', rowsPerSecond: 1_000_000 }
]

/** Exports all samples of a title over HTTP, alone and during 500 requests a second. */
export const exportApi: Measurement = {
  name: 'export-api',
  claim:
    'a whole series is exported at a million rows a second or more, in 64 MiB, and other answers take at most twice as long',
  async run({ directory, scale, note }) {
    const service = await startQuietService(directory)
    try {
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, 500)
      const rows = scaled(ROWS, scale)
      const path = await importSeries(service, directory, rows)
      const results: Result[] = []
      for (const { format, rowsPerSecond } of FORMATS) {
        note(`exporting ${rows} rows as ${format}`)
        await exported(service, `${path}&format=${format}`)
        const before = await residentBytes(service.pid)
        const watch = watchResident(service.pid, WATCH_MS)
        const begun = performance.now()
        const bytes = await exported(service, `${path}&format=${format}`)
        const seconds = (performance.now() - begun) / 1000
        const grown = ((await watch.stop()) - before) / MIB
        results.push(
          {
            what: `a series as ${format}`,
            measured: rows / seconds,
            unit: 'rows/s',
            target: { bound: 'at least', value: rowsPerSecond, of: 'measured' },
            detail: `${figure(bytes / rows)} bytes per row`
          },
          {
            what: `memory during it`,
            measured: grown,
            unit: 'MiB more',
            target: { bound: 'at most', value: MEMORY_MIB_MAX, of: 'measured' }
          }
        )
      }
      const concurrent = FORMATS.map(({ format }) => ({
        what: `exports as ${format}`,
        work: (ms: number) => exportedRepeatedly(`${service.apiUrl}${path}&format=${format}`, ms)
      }))
      return [...results, ...(await concurrentAnswers(service, concurrent, ROUNDS, note))]
    } finally {
      await service.remove()
    }
  }
}

/** Reads exports in a separate thread for `ms` milliseconds. */
async function exportedRepeatedly(url: string, ms: number): Promise<string> {
  const reader = new Worker(new URL('./export-reader.js', import.meta.url), { workerData: { url, ms } })
  const [exports] = await once(reader, 'message')
  return `${exports} exports`
}

/** Imports a count per minute up to now; returns the path of the whole history. */
async function importSeries(service: QuietService, directory: string, rows: number): Promise<string> {
  const firstMs = minuteNow() - rows * MINUTE_MS
  const file = join(directory, 'series.csv')
  const lines = Array.from(
    { length: rows },
    (_, n) => `${TITLE},${instantOf(firstMs + n * MINUTE_MS)},${(n * 7) % 997}`
  )
  await writeFile(file, `titleId,observedAt,online\n${lines.join('\n')}\n`)
  await service.importFile('title-count', file)
  return `/api/title/${TITLE}/online-users/history?resolution=raw&from=${instantOf(firstMs)}`
}

/** Reads an export to its end; returns its size in bytes. */
async function exported({ apiUrl }: QuietService, path: string): Promise<number> {
  const { statusCode, body } = await request(`${apiUrl}${path}`)
  let bytes = 0
  for await (const chunk of body) bytes += chunk.length
  if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}`)
  return bytes
}
