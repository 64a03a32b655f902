import { until } from '@gamenet/engines/testing'
import {
  importRunTopic,
  type LogMessage,
  leaderboardEntryTopic,
  type NetworkCounted,
  networkCountTopic,
  type ScrapeRan,
  scrapeTopic,
  type TitleCounted,
  type TitleDescribed,
  titleCountTopic,
  titleTopic
} from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { test } from 'tap'
import type { Tables } from '../src/index.js'
import { MemoryLog } from './memory-log.js'
import { emptyTables, imported, message, newestVersion, openTables, projectorOn, runToHead } from './pipeline.js'

const TITLE = '4d530064'
const network = (event: NetworkCounted) => message(networkCountTopic, event)
const count = (time: string, online: number, more: Partial<TitleCounted> = {}) =>
  message(titleCountTopic, { titleId: TITLE, observedAt: `2026-03-14T${time}Z`, online, ...more })
const described = (time: string, more: Partial<TitleDescribed>) =>
  message(titleTopic, { titleId: TITLE, observedAt: `2026-03-14T${time}Z`, name: 'A', ...more })
const ran = (event: Partial<ScrapeRan>) =>
  message(scrapeTopic, {
    source: 'network',
    observedAt: '2026-03-14T20:00:00Z',
    durationMs: 1,
    outcome: 'succeeded',
    published: 3,
    ...event
  })

const topicOf = (each: LogMessage) => each.headers.ce_type?.slice('gamenet.'.length, -'.v1'.length) ?? ''

test('projections', async (t) => {
  const engine = await openTables()
  const { control } = engine
  t.beforeEach(() => emptyTables(control))

  /** Given projected messages, when these are projected in the next step, the table has these rows. */
  const given = (...before: LogMessage[]) => ({
    when: (...now: LogMessage[]) => ({
      rows: async (sql: string) => {
        const log = new MemoryLog()
        for (const messages of [before, now]) {
          for (const each of messages) log.append(topicOf(each), [each])
          await runToHead(engine, log)
        }
        return (await control.rows(sql)).map((row) => Object.values(row))
      }
    })
  })

  await t.test('separate counts of the network do not erase one another', async (t) => {
    const rows = await given(network({ observedAt: '2026-03-14T20:00:00Z', online: 5, lobbies: 1 }))
      .when(network({ observedAt: '2026-03-14T20:00:00Z', registered: 900, lobbies: 0 }))
      .rows('SELECT c.metric, c.value FROM network_count AS c FINAL ORDER BY c.metric')
    t.same(rows, [
      ['lobbies', 0],
      ['online', 5],
      ['registered', 900]
    ])
  })

  await t.test(
    'an hour of the network is recomputed completely when one of its counts is late or corrected',
    async (t) => {
      const online = (time: string, value: number) => network({ observedAt: `2026-03-14T${time}Z`, online: value })
      const rows = await given(online('20:10:00', 7), online('20:59:59.999', 3), online('21:00:00', 50))
        .when(online('20:00:00', 4), online('20:10:00', 6), online('20:30:00', 6))
        .rows(`SELECT h.hour, h.min, h.max, h.max_at, h.sum, h.samples, h.last, h.last_at, h.position
        FROM network_count_hour AS h FINAL ORDER BY h.hour`)
      t.same(rows, [
        ['2026-03-14 20:00:00', 3, 6, '2026-03-14 20:10:00.000', '19', 4, 3, '2026-03-14 20:59:59.999', '5'],
        ['2026-03-14 21:00:00', 50, 50, '2026-03-14 21:00:00.000', '50', 1, 50, '2026-03-14 21:00:00.000', '2']
      ])
    }
  )

  await t.test('a repeated count of a title replaces the whole row of its instant', async (t) => {
    const rows = await given(count('20:00:00', 5, { sessions: 2, lobbyPlayers: 4 }))
      .when(count('20:00:00', 6))
      .rows('SELECT c.title_id, c.ts, c.online, c.sessions, c.lobby_players FROM title_count AS c FINAL')
    t.same(rows, [[TITLE, '2026-03-14 20:00:00.000', 6, null, null]])
  })

  await t.test('an hour of a title counts an event once that is in the log twice', async (t) => {
    const rows = await given(count('20:00:00', 60), count('20:00:00', 60))
      .when(count('20:00:00', 60), count('20:05:00', 10), count('20:07:00', 60))
      .rows('SELECT h.hour, h.min, h.max, h.max_at, h.sum, h.samples FROM title_count_hour AS h FINAL')
    t.same(rows, [['2026-03-14 20:00:00', 10, 60, '2026-03-14 20:00:00.000', '130', 3]])
  })

  await t.test('a day of a title is computed from its hours; an hour without players is not active', async (t) => {
    const rows = await given(count('00:00:00', 0), count('01:00:00', 2), count('23:59:00', 2))
      .when(
        count('01:30:00', 1),
        message(titleCountTopic, { titleId: TITLE, observedAt: '2026-03-15T00:00:00Z', online: 0 })
      )
      .rows(
        `SELECT d.day, d.min, d.max, d.max_at, d.sum, d.samples, d.active_hours FROM title_count_day AS d FINAL ORDER BY d.day`
      )
    t.same(rows, [
      ['2026-03-14', 0, 2, '2026-03-14 01:00:00.000', '5', 4, 2],
      ['2026-03-15', 0, 0, '2026-03-15 00:00:00.000', '0', 1, 0]
    ])
  })

  await t.test(
    'the newest counts of a title are those of the newest instant, even if older ones arrive later',
    async (t) => {
      const rows = await given(count('20:00:00', 5, { sessions: 1 }))
        .when(count('19:00:00', 900), count('20:00:00', 6))
        .rows('SELECT l.ts, l.online, l.sessions FROM title_latest AS l FINAL')
      t.same(rows, [['2026-03-14 20:00:00.000', 6, null]])
    }
  )

  await t.test('an imported description of a title is stored separately from a scraped one', async (t) => {
    const brought = (time: string, online: number) =>
      imported(titleCountTopic, { titleId: TITLE, observedAt: `2026-03-14T${time}Z`, online })
    const rows = await given(count('20:00:00', 5), brought('20:00:00', 7))
      .when(brought('22:00:00', 8), brought('21:00:00', 9), count('20:01:00', 6))
      .rows('SELECT l.imported, l.ts, l.online FROM title_latest AS l FINAL ORDER BY l.imported')
    t.same(rows, [
      [false, '2026-03-14 20:01:00.000', 6],
      [true, '2026-03-14 22:00:00.000', 8]
    ])
  })

  await t.test('a title folds field by field by instant, and an absent field changes nothing', async (t) => {
    const rows = await given(
      described('20:00:00', { name: 'FIne', publisher: 'P', features: ['leaderboards', 'matchmaking'] })
    )
      .when(
        described('21:00:00', { name: 'New', releaseDate: '2001-11-15', features: [] }),
        described('19:00:00', {
          name: 'Old',
          publisher: 'Q',
          image: 'https://example.org/a.png',
          productCode: 'MS-100',
          title: 'T'
        })
      )
      .rows('SELECT f.field, f.value, f.name_key FROM title AS f FINAL ORDER BY f.field')
    t.same(rows, [
      ['features', '', ''],
      ['image', 'https://example.org/a.png', ''],
      ['name', 'New', 'new'],
      ['product_code', 'MS-100', ''],
      ['publisher', 'P', ''],
      ['release_date', '2001-11-15', ''],
      ['title', 'T', '']
    ])
  })

  await t.test('every run of a source has its row, and a run published twice has one', async (t) => {
    const failed = ran({ source: 'games', outcome: 'failed', published: 0, reason: 'no table' })
    const rows = await given(ran({}), failed)
      .when(failed, ran({ durationMs: 2 }))
      .rows('SELECT s.source, s.outcome, s.duration_ms, s.published, s.reason FROM scrape AS s FINAL ORDER BY s.source')
    t.same(rows, [
      ['games', 'failed', 1, 0, 'no table'],
      ['network', 'succeeded', 2, 3, '']
    ])
  })

  await t.test('the newest event of an import counts', async (t) => {
    const advanced = (rowsRead: number, finished: boolean) =>
      message(importRunTopic, {
        importId: 'ab'.repeat(16),
        observedAt: '2026-03-14T20:00:00Z',
        topic: 'title-count',
        file: '-',
        rowsRead,
        published: rowsRead - 1,
        rejected: 1,
        finished
      })
    const rows = await given(advanced(10, false))
      .when(advanced(9_007_199_254_740_991, true))
      .rows('SELECT i.import_id, i.rows_read, i.finished FROM import_run AS i FINAL')
    t.same(rows, [['ab'.repeat(16), '9007199254740991', true]])
  })

  await t.test('readers learn what changed: each key by its name, in whole buckets; very many as *', async (t) => {
    const newest = 'd.version = (SELECT max(m.version) FROM data_change AS m)'
    const published = `SELECT d.projection, d.key, d.from_ms, d.to_ms FROM data_change AS d FINAL WHERE ${newest}
      ORDER BY d.projection, d.key`
    const rows = await given(count('20:00:00', 5))
      .when(count('20:10:00', 5), count('22:10:00', 5), count('21:00:00', 5, { titleId: '00000001' }))
      .rows(published)
    const ms = (time: string) => String(Date.parse(`2026-03-14T${time}Z`))
    const nextDay = String(Date.parse('2026-03-15T00:00:00Z'))
    t.same(rows, [
      ['title-count', '00000001', ms('21:00:00'), ms('21:00:00.001')],
      ['title-count', TITLE, ms('20:10:00'), ms('22:10:00.001')],
      ['title-count-day', '00000001', ms('00:00:00'), nextDay],
      ['title-count-day', TITLE, ms('00:00:00'), nextDay],
      ['title-count-hour', '00000001', ms('21:00:00'), ms('22:00:00')],
      ['title-count-hour', TITLE, ms('20:00:00'), ms('23:00:00')],
      ['title-latest', '00000001', ms('21:00:00'), ms('21:00:00.001')],
      ['title-latest', TITLE, ms('20:10:00'), ms('22:10:00.001')]
    ])
    for (const titles of [50, 51]) {
      await emptyTables(control)
      const counts = Array.from({ length: titles }, (_, n) =>
        count(n === 0 ? '23:00:00' : '20:00:00', 5, { titleId: n.toString(16).padStart(8, '0') })
      )
      const keys = await given()
        .when(...counts)
        .rows(`SELECT d.key, d.from_ms, d.to_ms FROM data_change AS d FINAL WHERE d.projection = 'title-count'`)
      if (titles === 50) t.equal(keys.length, 50)
      else t.same(keys, [['*', ms('20:00:00'), ms('23:00:00.001')]])
    }
  })

  await t.test('data versions rise, even when the clock has gone back', async (t) => {
    const future = (Date.now() + 86_400_000) * 1000
    const line = JSON.stringify([future, 'scrape', '*', 0, 1])
    await control.insert('data_change', ['version', 'projection', 'key', 'from_ms', 'to_ms'], Buffer.from(`${line}\n`))
    const rows = await given().when(ran({})).rows('SELECT max(d.version) FROM data_change AS d')
    t.same(rows, [[String(future + 1)]])
  })

  await t.test('only a projection that fails stops; it reports the reason, and catches up', async (t) => {
    let isBroken = true
    const projectionTables: Tables = {
      ...engine.projections,
      execute: async (sql, parameters) => {
        if (isBroken && sql.startsWith('INSERT INTO title_count_hour__0')) throw new Error('memory limit')
        await engine.projections.execute(sql, parameters)
      }
    }
    const log = new MemoryLog()
    log.append('title-count', [count('20:00:00', 5)])
    const registry = new Registry()
    const projector = projectorOn({ loader: engine.loader, projections: projectionTables }, log, { registry })
    projector.start()
    const stateOf = async (name: string) =>
      (await projector.status()).projections.find(({ projection }) => projection === name)
    await until(async () => (await stateOf('title-count-hour'))?.state === 'failing')
    await until(async () => (await stateOf('title-latest'))?.lag === 0)
    await t.rejects(projector.caughtUp({ standstillMs: 200 }), {
      message: /projection title-count-hour \(memory limit\) has consumed 0 of 1/
    })
    const { projections } = await projector.status()
    const state = (name: string) => projections.find(({ projection }) => projection === name)
    t.match(state('title-count-hour'), { state: 'failing', reason: 'memory limit', lag: 1 })
    t.match(state('title-count'), {
      state: 'running',
      reason: null,
      lag: 0,
      checkpoints: [{ epoch: 0, partition: 0, next: 1 }]
    })
    t.match(state('title-latest'), { state: 'running', lag: 0 })
    t.match(await registry.metrics(), /gamenet_projection_failing\{projection="title-count-hour"\} 1/)
    isBroken = false
    await projector.caughtUp()
    t.match(await registry.metrics(), /gamenet_projection_failing\{projection="title-count-hour"\} 0/)
    t.match(await registry.metrics(), /gamenet_loader_lag_events\{topic="title-count"\} 0/)
    const waiting = projector.caughtUp({ targets: [{ topic: 'title-count', epoch: 0, partition: 0, next: 2 }] })
    await Promise.all([t.rejects(waiting, { message: 'The projector was stopped.' }), projector.stop()])
    t.same(await control.rows('SELECT h.max AS max FROM title_count_day AS h FINAL'), [{ max: 5 }])
  })

  await t.test(
    'a step that failed here and then succeeded in another process no longer counts as failing here',
    async (t) => {
      const projectionTables: Tables = {
        ...engine.projections,
        execute: async (sql, parameters) => {
          if (sql.startsWith('INSERT INTO title_latest__0')) throw new Error('memory limit')
          await engine.projections.execute(sql, parameters)
        }
      }
      const log = new MemoryLog()
      log.append('title-count', [count('20:00:00', 5)])
      const projector = projectorOn({ loader: engine.loader, projections: projectionTables }, log)
      projector.start()
      await until(async () => (await projector.status()).projections.some(({ state }) => state === 'failing'))
      await t.rejects(projector.caughtUp({ standstillMs: 200 }), { message: /memory limit/ })
      await runToHead(engine, log)
      await projector.caughtUp()
      const { projections } = await projector.status()
      t.match(
        projections.find(({ projection }) => projection === 'title-latest'),
        { state: 'running', reason: null, lag: 0 }
      )
      await projector.stop()
    }
  )

  await t.test(
    'with several projectors, a change gets a version above all visible ones, whatever their clocks show',
    async (t) => {
      const log = new MemoryLog()
      const projector = projectorOn(engine, log, { isShared: true })
      projector.start()
      log.append('title-count', [count('20:00:00', 5)])
      await projector.caughtUp()
      const ahead = (Date.now() + 900_000) * 1000
      const published = `${JSON.stringify([ahead, 'title-count', '4d530064', 0, 1])}\n`
      const columns = ['version', 'projection', 'key', 'from_ms', 'to_ms']
      await control.insert('data_change', columns, new TextEncoder().encode(published))
      log.append('title-count', [count('20:01:00', 6)])
      await projector.caughtUp()
      await projector.stop()
      t.ok((await newestVersion(control)) > ahead)
    }
  )

  await t.test('a fold that read a board before another process continued does not replace its rows', async (t) => {
    const board = { titleId: TITLE, leaderboardId: 7 }
    const entry = (playerName: string, time: string, rating: string, order: number) =>
      message(leaderboardEntryTopic, {
        ...board,
        playerName,
        changeType: 'new',
        changedAt: `2026-03-14T${time}Z`,
        rating,
        order,
        step: 1
      })
    const log = new MemoryLog()
    log.append('leaderboard-entry', [entry('ann', '20:00:00', '4', 2)])
    let reads = 0
    const overtaken: Tables = {
      ...engine.projections,
      json: async (sql, parameters) => {
        reads += 1
        if (reads === 2) {
          log.append('leaderboard-entry', [entry('cy', '20:01:00', '5', 1)])
          await runToHead(engine, log)
        }
        return await engine.projections.json(sql, parameters)
      }
    }
    await runToHead({ loader: engine.loader, projections: overtaken }, log)
    t.same(
      await control.rows('SELECT e.player AS player, e.rank AS rank FROM leaderboard_entry AS e FINAL ORDER BY e.rank'),
      [
        { player: 'cy', rank: '1' },
        { player: 'ann', rank: '2' }
      ]
    )
    t.same(await control.rows('SELECT r.players AS players FROM record_history AS r FINAL'), [
      { players: ['ann', 'cy'] }
    ])
  })

  await t.test('a log that was recreated under its old epoch is reported, not waited for', async (t) => {
    const log = new MemoryLog()
    log.append('title-count', [count('20:00:00', 5), count('20:01:00', 5)])
    await runToHead(engine, log)
    const recreated = new MemoryLog()
    recreated.append('title-count', [count('20:02:00', 5)])
    const projector = projectorOn(engine, recreated)
    projector.start()
    await t.rejects(projector.caughtUp({ standstillMs: 1000 }), {
      message:
        /^title-count, epoch 0, partition 0 was loaded to 2 \(last at 20\S+Z\), and the log ends at 1: .* its epoch must be raised \(LOG_EPOCH\)\.$/
    })
    const status = await projector.status()
    t.match(
      status.topics.find(({ topic }) => topic === 'title-count'),
      { partitions: [{ head: 1, loaded: 2 }] }
    )
    t.match(status.loaderTrouble, /the log ends at 1/)
    await projector.stop()
  })
})
