import { mkdtempSync, readdirSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { migratePostgres, openPglite } from '../src/index.js'

/** Ratings, each with its event in the outbox, which is emptied meanwhile as by the relay. */
const WRITES = Number(process.env.CAMPAIGN_WRITES ?? 500_000)
const AT_ONCE = 32
const PAIRS = 2000
const MIB = 2 ** 20

test(`${WRITES} writes leave the embedded PostgreSQL as large as its contents`, async (t) => {
  const dir = mkdtempSync(join(process.env.CAMPAIGN_DIRECTORY ?? t.testdir(), 'postgres-'))
  const postgres = await openPglite({ dir })
  t.teardown(async () => {
    await postgres.close()
    await rm(dir, { recursive: true, force: true })
  })
  await migratePostgres(postgres)
  const slowest = { begin: 0, end: 0 }
  let [done, next] = [0, 0]
  const half = WRITES / 2
  const rate = async (n: number): Promise<void> => {
    const began = performance.now()
    await postgres.query(
      `WITH rated AS (
         INSERT INTO rating VALUES ('user ' || $1::int % $2, 'rater', 'User', 'Rater', 3, repeat('x', 200), now(), $1)
         ON CONFLICT (user_key, rater_key) DO UPDATE SET revision = excluded.revision, rated_at = excluded.rated_at)
       INSERT INTO outbox (topic, people, event) VALUES ('rating', ARRAY['user', 'rater'], jsonb_build_object('n', $1::int))`,
      [n, PAIRS]
    )
    const ms = performance.now() - began
    if (n < half) slowest.begin = Math.max(slowest.begin, ms)
    else slowest.end = Math.max(slowest.end, ms)
    done += 1
    if (done % 100 === 0) await postgres.query('DELETE FROM outbox')
  }
  const begun = performance.now()
  let atHalf = 0
  const rater = async (): Promise<void> => {
    for (; next < WRITES; ) {
      next += 1
      if (next === half) atHalf = bytesOf(dir)
      await rate(next - 1)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, rater))
  const seconds = (performance.now() - begun) / 1000
  const atEnd = bytesOf(dir)
  const [tables] = await postgres.query<{ bytes: number }>(
    `SELECT sum(pg_total_relation_size(s.relid))::int AS bytes FROM pg_stat_user_tables AS s`
  )
  const [kept] = await postgres.query<{ n: number }>('SELECT count(*)::int AS n FROM rating')
  t.comment(
    `${WRITES} writes in ${seconds.toFixed(0)} s (${(WRITES / seconds).toFixed(0)}/s, slowest ${slowest.begin.toFixed(0)} and ${slowest.end.toFixed(0)} ms); ` +
      `directory ${(atHalf / MIB).toFixed(0)} MiB at half, ${(atEnd / MIB).toFixed(0)} MiB at the end; tables ${((tables?.bytes ?? 0) / MIB).toFixed(1)} MiB`
  )
  t.equal(kept?.n, Math.min(PAIRS, WRITES))
  t.ok((tables?.bytes ?? 0) < 64 * MIB, 'the tables hold 2,000 ratings and what is written within seconds')
  t.ok(atEnd < 512 * MIB, 'with 256 MiB of write-ahead log')
})

const bytesOf = (dir: string): number =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce(
      (sum, entry) => sum + (statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0),
      0
    )
