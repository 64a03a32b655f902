import { type PresenceSeen, presenceTopic } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { type Test, test } from 'tap'
import type { PassLock, Tables } from '../src/index.js'
import { createLoader } from '../src/load/loader.js'
import { projectorMetrics } from '../src/load/projector-metrics.js'
import { SEAL_KEY_CACHE_MS } from '../src/load/seal-key-cache.js'
import { readInline } from '../testing/inline.js'
import { MemoryLog } from './memory-log.js'
import { sealKeys, sealOf } from './people.js'
import { AT_ONCE, emptyTables, firstStore, message, openTables, projectorOn, QUIET } from './pipeline.js'

/* Records are decrypted with a key, and their rows are stored later. The key may be deleted between the two. */

const seen = (username: string, second: number): PresenceSeen => ({
  username,
  state: 'online',
  game: 'Halo 2',
  periodSeconds: 60,
  observedAt: `2026-03-14T20:00:${10 + second}Z`
})
const logOf = (...usernames: string[]): MemoryLog => {
  const log = new MemoryLog()
  const sightings = usernames.map((username, second) => message(presenceTopic, seen(username, second)))
  log.append('presence', sightings)
  return log
}
const latch = () => {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

const reading = (tables: Tables): Omit<Tables, 'insert'> => ({
  rows: (...query) => tables.rows(...query),
  json: (...query) => tables.json(...query),
  execute: (...query) => tables.execute(...query)
})

test('a user who is erased while rows wait to be stored', async (t) => {
  const engine = await openTables()
  const { control } = engine
  t.beforeEach(() => emptyTables(control))

  const hasNoRows = async (t: Test, areKeysAway: boolean) => {
    const clock = { ms: 5 }
    const [asked, stored] = [latch(), latch()]
    let isAway = true
    let gone: number | undefined
    let isKeyed = true
    const tables: Tables = {
      ...reading(control),
      insert: async (...rows) => {
        if (!isAway) return await control.insert(...rows)
        asked.open()
        throw new Error('the tables are away')
      }
    }
    const loader = createLoader({
      store: firstStore(tables),
      topics: [presenceTopic],
      startReading: () => readInline(logOf('Ann', 'Gone', 'Ann'), [presenceTopic], AT_ONCE)(),
      sealKeys: async (people) => {
        if (isKeyed) return await sealKeys(people.filter((person) => person !== gone))
        isKeyed = true
        throw new Error('the keys are away')
      },
      metrics: projectorMetrics(new Registry(), {
        logState: async () => ({ lag: new Map(), stalled: [] }),
        deadLetters: async () => new Map()
      }),
      logger: QUIET,
      onStored: stored.open,
      backoff: AT_ONCE,
      now: () => clock.ms
    })
    loader.start()
    await asked.opened
    gone = sealOf('Gone').id
    clock.ms += SEAL_KEY_CACHE_MS + 1
    isAway = false
    isKeyed = !areKeysAway
    await stored.opened
    await loader.stop()
    const rows = await control.rows('SELECT e.username AS username, e.offset AS offset FROM event_presence AS e')
    t.same(rows, [
      { username: 'Ann', offset: '0' },
      { username: 'Ann', offset: '2' }
    ])
    t.match(await control.rows(`SELECT max(c.next) AS next FROM checkpoint AS c WHERE c.name = 'load:presence'`), [
      { next: '3' }
    ])
  }
  await t.test('has no rows, however long they waited, and all other users have theirs', (t) => hasNoRows(t, false))
  await t.test('nor if the keys are unavailable meanwhile', (t) => hasNoRows(t, true))

  await t.test(
    'is not deleted from tables before a rebuild has stored the rows that it read from the log',
    async (t) => {
      const [storing, release] = [latch(), latch()]
      const done: string[] = []
      const rebuild: Tables = {
        ...reading(engine.rebuild),
        insert: async (table, ...rows) => {
          if (!table.startsWith('event_presence__1')) return await engine.rebuild.insert(table, ...rows)
          storing.open()
          await release.opened
          await engine.rebuild.insert(table, ...rows)
          done.push('stored')
        }
      }
      const { loader, projections } = engine
      let isExclusive = false
      const exclusive: PassLock['exclusive'] = async (work) => {
        if (isExclusive) throw new Error('nested exclusive work would wait for itself')
        isExclusive = true
        return await work(async () => undefined).finally(() => {
          isExclusive = false
        })
      }
      const passes: PassLock = { shared: (pass) => pass(async () => undefined), exclusive }
      const projector = projectorOn({ loader, projections, rebuild }, logOf('Ann'), { passLock: passes })
      projector.start()
      await projector.caughtUp()
      await projector.rebuilds.start('presence', { isFromLog: true })
      await storing.opened
      const ended = projector.stepsEnded().then(() => done.push('looked'))
      // Takes longer than `stepsEnded` would without waiting.
      await projector.caughtUp()
      release.open()
      await ended
      t.same(done, ['stored', 'looked'])
      await projector.stop()
    }
  )
})
