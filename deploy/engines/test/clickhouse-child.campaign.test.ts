import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { type ClickHouse, openChdb } from '../src/index.js'

/* Ends of the embedded ClickHouse. The short form is clickhouse-chdb.test.ts. */

const STARTS = 100
const KILLS = Number(process.env.CAMPAIGN_KILLS ?? 200)
const KILL_AFTER_MS_MAX = 500
const ANSWER_MS_MAX = 5000
const RETRY_MS = 20

test('a hundred starts and stops leave no process and no file', async (t) => {
  const path = join(t.testdir(), 'clickhouse')
  const first = await openChdb({ path })
  await first.close()
  const files = readdirSync(path)
  for (let start = 0; start < STARTS; start += 1) {
    const clickhouse = await openChdb({ path })
    await clickhouse.close()
  }
  t.same(readdirSync(path), files)
  t.equal(await readFile(`/proc/self/task/${process.pid}/children`, 'utf8'), '')
})

test('a ClickHouse that is killed under load loses nothing, and answers again within seconds', async (t) => {
  const clickhouse = await openChdb({ path: join(t.testdir(), 'clickhouse') })
  t.teardown(() => clickhouse.close())
  await clickhouse.loader.execute('CREATE TABLE kept (n UInt32) ENGINE = MergeTree ORDER BY n')
  const load = startLoad(clickhouse)
  const waits: number[] = []
  for (let kill = 0; kill < KILLS; kill += 1) {
    await pause(Math.random() * KILL_AFTER_MS_MAX)
    process.kill(clickhouse.process().pid ?? 0, 'SIGKILL')
    const began = performance.now()
    await load.next()
    waits.push(performance.now() - began)
  }
  const { acknowledged, sent } = await load.stop()
  const rows = await clickhouse.readers.rows('SELECT DISTINCT k.n AS n FROM kept AS k ORDER BY n')
  const found = new Set(rows.map(({ n }) => Number(n)))
  t.same(
    acknowledged.filter((n) => !found.has(n)),
    [],
    `${acknowledged.length} acknowledged inserts of ${sent}`
  )
  const longest = Math.max(...waits)
  t.comment(`${KILLS} kills; ${acknowledged.length} inserts; the longest wait was ${Math.round(longest)} ms`)
  t.ok(longest <= ANSWER_MS_MAX, `${longest}`)
})

/** Inserts numbers one after the other and reads meanwhile; a failed insert is not repeated. */
function startLoad({ loader, readers }: ClickHouse) {
  const stopping = new AbortController()
  const acknowledged: number[] = []
  let sent = 0
  const answered = async (work: () => Promise<unknown>): Promise<boolean> => {
    try {
      await work()
      return true
    } catch {
      await pause(RETRY_MS)
      return false
    }
  }
  const insert = async () => {
    while (!stopping.signal.aborted) {
      const n = sent++
      if (await answered(() => loader.insert('kept', ['n'], Buffer.from(`[${n}]\n`)))) acknowledged.push(n)
    }
  }
  const read = async () => {
    while (!stopping.signal.aborted) await answered(() => readers.rows('SELECT count() AS n FROM kept'))
  }
  const running = Promise.all([insert(), read(), read()])
  return {
    /** Resolves when an insert that begins now, or a later one, is acknowledged. */
    next: async () => {
      const from = sent
      while ((acknowledged.at(-1) ?? 0) < from) await pause(1)
    },
    stop: async () => {
      stopping.abort()
      await running
      return { acknowledged, sent }
    }
  }
}
