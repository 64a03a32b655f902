import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { instantOf } from '@gamenet/schemas'
import { request } from 'undici'
import { figure, type Measurement, type Result, scaled } from './measurement.js'
import { residentBytes, residentDuring } from './process-figures.js'
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
const FORMATS = [
  { format: 'parquet', rowsPerSecond: 1_500_000 },
  { format: 'arrow', rowsPerSecond: 4_000_000 },
  { format: 'csv', rowsPerSecond: 1_000_000 }
]

/** Minutes of counts of one title. */
type Series = {
  readonly apiUrl: string
  readonly firstMs: number
  /** That were asked for. */
  urls: number
}

/**
 * Exports all samples of a title over HTTP. The service makes a file whole before its first byte and keeps it for a
 * minute, so each export has a URL of its own.
 */
export const exportApi: Measurement = {
  name: 'export-api',
  claim: 'a whole series is exported at a million rows a second or more, in 64 MiB',
  async run({ directory, scale, note }) {
    const service = await startQuietService(directory)
    try {
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, 500)
      const rows = scaled(ROWS, scale)
      const series = await importSeries(service, directory, rows)
      const results: Result[] = []
      for (const { format, rowsPerSecond } of FORMATS) {
        note(`exporting ${rows} rows as ${format}`)
        await exported(seriesUrl(series, format))
        const before = await residentBytes(service.pid)
        const exporting = exported(seriesUrl(series, format))
        const grown = ((await residentDuring(service.pid, WATCH_MS, exporting)) - before) / MIB
        const { bytes, firstByteMs, ms } = await exporting
        results.push(
          {
            what: `a series as ${format}`,
            measured: (rows * 1000) / ms,
            unit: 'rows/s',
            target: { bound: 'at least', value: rowsPerSecond, of: 'measured' },
            detail: `${figure(bytes / rows)} bytes per row; first byte after ${figure(firstByteMs)} ms, when the file is whole`
          },
          {
            what: `memory during it`,
            measured: grown,
            unit: 'MiB more',
            target: { bound: 'at most', value: MEMORY_MIB_MAX, of: 'measured' }
          }
        )
      }
      return results
    } finally {
      await service.remove()
    }
  }
}

/** Returns a new URL of all rows: for one that was asked for before, the service would read the file that it keeps. */
function seriesUrl(series: Series, format: string): string {
  series.urls += 1
  const from = instantOf(series.firstMs - series.urls)
  return `${series.apiUrl}/api/title/${TITLE}/online-users/history?resolution=raw&from=${from}&format=${format}`
}

/** Imports a count per minute up to now. */
async function importSeries(service: QuietService, directory: string, rows: number): Promise<Series> {
  const firstMs = minuteNow() - rows * MINUTE_MS
  const file = join(directory, 'series.csv')
  const lines = Array.from(
    { length: rows },
    (_, n) => `${TITLE},${instantOf(firstMs + n * MINUTE_MS)},${(n * 7) % 997}`
  )
  await writeFile(file, `titleId,observedAt,online\n${lines.join('\n')}\n`)
  await service.importFile('title-count', file)
  return { apiUrl: service.apiUrl, firstMs, urls: 0 }
}

/** Reads an export to its end. */
async function exported(url: string): Promise<{ bytes: number; firstByteMs: number; ms: number }> {
  const begun = performance.now()
  const { statusCode, body } = await request(url)
  const firstByteMs = performance.now() - begun
  let bytes = 0
  for await (const chunk of body) bytes += chunk.length
  if (statusCode !== 200) throw new Error(`${url} answered ${statusCode}`)
  return { bytes, firstByteMs, ms: performance.now() - begun }
}
