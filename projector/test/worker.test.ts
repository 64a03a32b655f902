import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { Worker } from 'node:worker_threads'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { instantOf, presenceTopic, titleCountTopic } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { createProjector, type ReadingSide } from '../src/index.js'
import { sealKeys } from './people.js'
import { AT_ONCE, message, openTables, QUIET } from './pipeline.js'

const EVENTS = 50_000

test('a reading thread on the embedded log loads everything', async (t) => {
  const engine = await openTables()
  const path = `${t.testdirName}-log`
  t.teardown(() => rm(path, { recursive: true, force: true }))
  const log = openEmbeddedLog({ path })
  t.teardown(() => log.close())
  const events = Array.from({ length: EVENTS }, (_, n) =>
    message(titleCountTopic, {
      titleId: (n % 200).toString(16).padStart(8, '0'),
      observedAt: instantOf(60_000 * Math.floor(n / 200)),
      online: n
    })
  )
  const startReading = async (): Promise<ReadingSide> => {
    const thread = new Worker(new URL('./loader-thread.js', import.meta.url), { workerData: path, execArgv: [] })
    const ended = once(thread, 'exit').then(() => undefined)
    // A thread that is terminated in an LMDB call would crash the process.
    return { port: thread, ended, close: () => ended }
  }
  const projector = createProjector({
    tables: engine,
    startReading,
    sealKeys,
    registry: new Registry(),
    logger: QUIET,
    onChange: () => {},
    backoff: AT_ONCE
  })
  projector.start()
  await log.append('title-count', events.slice(0, 1000))
  await projector.caughtUp()
  await log.append('title-count', events.slice(1000))
  await projector.caughtUp()
  const [counted] = await engine.control.rows(
    'SELECT count() AS rows, sum(c.online) AS sum FROM title_count AS c FINAL'
  )
  t.same(counted, { rows: String(EVENTS), sum: String((EVENTS * (EVENTS - 1)) / 2) })
  const [hours] = await engine.control.rows('SELECT sum(h.samples) AS samples FROM title_count_hour AS h FINAL')
  t.same(hours, { samples: String(EVENTS) })
  await log.append('title-count', events.slice(0, 1))
  const seen = { username: 'Ann', state: 'online', periodSeconds: 60, observedAt: instantOf(0) } as const
  await log.append('presence', [message(presenceTopic, seen)])
  await projector.caughtUp()
  t.match(await engine.control.rows('SELECT e.username FROM event_presence AS e'), [{ username: 'Ann' }])
  await projector.stop()
})
