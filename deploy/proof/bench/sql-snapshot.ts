import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { spawnGamenet } from '../../test/service/gamenet.js'
import { figure, type Measurement, quantile } from './measurement.js'
import { residentBytes } from './process-figures.js'
import { type QuietService, startQuietServiceOn } from './quiet-service.js'
import { openTitleCountRows } from './title-count-rows.js'

const ROUNDS = 5
const WATCH_MS = 10
const SECONDS_MAX = 2
const MIB = 1024 * 1024
const MEMORY_MIB_MAX = 400

/** `gamenet sql` on a running service: duration of the command, and memory of its processes. */
export const sqlSnapshot: Measurement = {
  name: 'sql-snapshot',
  claim: 'a snapshot and its first answer take at most 2 s and 400 MiB',
  async run(conditions) {
    const { note } = conditions
    const { tables, path, rows, titleIds } = await openTitleCountRows(conditions)
    await tables.close()
    // A service refuses tables whose log is missing.
    await openEmbeddedLog({ path: join(path, 'log') }).close()
    const service = await startQuietServiceOn(path)
    try {
      const statements = [
        {
          what: 'the months of a title',
          sql: `SELECT toStartOfMonth(observed_at) AS month, max(online) AS peak, count() AS samples FROM title_count
            WHERE title_id = '${titleIds[7]}' GROUP BY month ORDER BY month`
        },
        {
          what: 'the peaks of all titles',
          sql: 'SELECT title_id, max(online) AS peak FROM title_count GROUP BY title_id'
        }
      ]
      const results = []
      for (const { what, sql } of statements) {
        note(`${what} of ${figure(rows)} rows`)
        const runs = []
        for (let round = 0; round < ROUNDS; round += 1) runs.push(await run(service, sql))
        results.push(
          {
            what: `snapshot and ${what}`,
            measured: quantile(
              runs.map(({ seconds }) => seconds),
              0.5
            ),
            unit: 's',
            target: { bound: 'at most' as const, value: SECONDS_MAX, of: 'measured' as const },
            detail: `${figure(rows)} rows; slowest ${figure(Math.max(...runs.map(({ seconds }) => seconds)))} s`
          },
          {
            what: 'memory of its processes',
            measured: Math.max(...runs.map(({ bytes }) => bytes)) / MIB,
            unit: 'MiB',
            target: { bound: 'at most' as const, value: MEMORY_MIB_MAX, of: 'measured' as const }
          }
        )
      }
      return results
    } finally {
      await service.stop()
    }
  }
}

async function run({ dataDirectory }: QuietService, statement: string): Promise<{ seconds: number; bytes: number }> {
  const begun = performance.now()
  const child = spawnGamenet({ DATA_DIR: dataDirectory }, ['sql', statement])
  child.stdout?.resume()
  const errors = text(child.stderr ?? Readable.from([]))
  const ended = once(child, 'exit')
  let bytes = 0
  const timer = setInterval(async () => {
    bytes = Math.max(bytes, await residentOf(child.pid ?? 0).catch(() => 0))
  }, WATCH_MS)
  const [code] = await ended
  const seconds = (performance.now() - begun) / 1000
  clearInterval(timer)
  if (code !== 0) throw new Error(`gamenet sql ended with ${code}: ${await errors}`)
  return { seconds, bytes }
}

/** Resident memory of a process and its descendants; shared pages count once per process. */
async function residentOf(pid: number): Promise<number> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter((id) => id !== '')
  const below = await Promise.all(children.map((id) => residentOf(Number(id)).catch(() => 0)))
  return below.reduce((sum, bytes) => sum + bytes, await residentBytes(pid))
}
