import { createReadStream, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createGunzip, gunzipSync } from 'node:zlib'
import { instantOf, millisecondsOf, type NetworkCounted, TitleId } from '@gamenet/schemas'
import { parse } from 'csv-parse'
import { z } from 'zod'

/** The folder of the shipped samples, `deploy/demo/samples`, relative to the compiled file. */
const SAMPLES = new URL('../../../demo/samples/', import.meta.url)

/** The shipped catalogue of titles. */
export const CATALOGUE_FILE = fileURLToPath(new URL('titles.jsonl.gz', SAMPLES))

/** The shipped hourly history of a real network. */
export const ONLINE_HISTORY_FILE = fileURLToPath(new URL('online-hourly-2017-2026.csv.gz', SAMPLES))

const CatalogueTitle = z.object({
  titleId: TitleId,
  name: z.string().min(1),
  title: z.string(),
  publisher: z.string(),
  releaseDate: z.iso.date().nullable()
})
export type CatalogueTitle = z.infer<typeof CatalogueTitle>

/** Returns the titles of the catalogue, in the order of the file. Ids are unique, names are not. */
export function readCatalogue(file: string = CATALOGUE_FILE): CatalogueTitle[] {
  const lines = gunzipSync(readFileSync(file)).toString('utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => CatalogueTitle.parse(JSON.parse(line)))
}

/**
 * Returns the hours of the shipped history with a sample, oldest first: `online` only, because the file has no other
 * count. An empty cell is a missing sample; 0 is a count.
 */
export async function readOnlineHistory(file: string = ONLINE_HISTORY_FILE): Promise<NetworkCounted[]> {
  const hours: NetworkCounted[] = []
  const cells = createReadStream(file)
    .pipe(createGunzip())
    .pipe(parse({ from_line: 2 }))
  for await (const [timestamp, peak] of cells as AsyncIterable<readonly [string, string]>) {
    if (peak === '') continue
    const ms = millisecondsOf(`${timestamp.replace(' ', 'T')}Z`)
    const online = Number(peak)
    if (!Number.isInteger(ms) || !Number.isInteger(online) || online < 0) {
      throw new Error(`${file} has the row "${timestamp},${peak}"; expected YYYY-MM-DD HH:MM:SS and a whole number`)
    }
    hours.push({ observedAt: instantOf(ms), online })
  }
  return hours
}
