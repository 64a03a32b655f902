import { loadCheckpoint, type MatchesListed, matchListTopic } from '@gamenet/schemas'
import { test } from 'tap'
import { storeOver, type Tables } from '../src/index.js'
import { Checkpoints } from '../src/store/checkpoint.js'
import { MemoryLog } from './memory-log.js'
import { emptyTables, message, openTables, projectorOn, runToHead } from './pipeline.js'

const TITLE = '4d530064'
/** A list at a time of day: `ann 3/8` is a lobby of ann with 3 of 8 players. */
const list = (time: string, ...lobbies: string[]) => {
  const matches: MatchesListed['matches'] = lobbies.map((lobby) => {
    const [hostName = '', players] = lobby.split(' ')
    const [currentPlayers = 0, maxPlayers = 0] = (players ?? '1/8').split('/').map(Number)
    return { hostName, currentPlayers, maxPlayers }
  })
  return message(matchListTopic, { titleId: TITLE, observedAt: `2026-03-14T${time}Z`, matches })
}

const MATCHES = `
  SELECT s.host, formatDateTime(s.first_seen, '%T', 'UTC') AS first, formatDateTime(s.last_seen, '%T', 'UTC') AS last,
    s.peak_players, s.max_players, toUInt32(s.players_sum) AS players, s.sightings
  FROM match_session AS s FINAL WHERE NOT s.is_void ORDER BY s.first_seen, s.host, s.nth`

test('projections of matches', async (t) => {
  const engine = await openTables()
  const { control } = engine
  t.beforeEach(() => emptyTables(control))

  const rowsOf = async (sql: string) => (await control.rows(sql)).map((row) => Object.values(row))

  /** Projects these messages step by step, and returns the rows of the table. */
  const rowsAfter = async (sql: string, ...steps: ReturnType<typeof list>[][]) => {
    const log = new MemoryLog()
    const projector = projectorOn(engine, log)
    projector.start()
    for (const messages of steps) {
      log.append('match-list', messages)
      await projector.caughtUp()
    }
    await projector.stop()
    return await rowsOf(sql)
  }

  await t.test('a lobby in successive lists is one match, with its first and last sight and its peaks', async (t) => {
    const steps = [
      [list('20:00:00', 'ann 3/8', 'bob 1/0')],
      [list('20:01:00', 'ann 7/16')],
      [list('20:05:00', 'ann 2/8')]
    ]
    t.same(await rowsAfter(MATCHES, ...steps, [list('20:06:00')]), [
      ['ann', '20:00:00', '20:05:00', 7, 16, 12, 3],
      ['bob', '20:00:00', '20:00:00', 1, 0, 1, 1]
    ])
  })

  await t.test(
    'two lobbies of one host are distinguished by their order, and one that returns is a new match',
    async (t) => {
      const steps = [
        [list('20:00:00', 'ann 1/8', 'bob', 'ann 5/8')],
        [list('20:01:00', 'ann 2/8')],
        [list('20:02:00', 'ann 3/8', 'ann 6/8')]
      ]
      t.same(await rowsAfter(MATCHES, ...steps), [
        ['ann', '20:00:00', '20:02:00', 3, 8, 6, 3],
        ['ann', '20:00:00', '20:00:00', 5, 8, 5, 1],
        ['bob', '20:00:00', '20:00:00', 1, 8, 1, 1],
        ['ann', '20:02:00', '20:02:00', 6, 8, 6, 1]
      ])
    }
  )

  await t.test('time without a list neither ends nor extends a match', async (t) => {
    const later = message(matchListTopic, {
      titleId: TITLE,
      observedAt: '2026-03-20T20:00:00Z',
      matches: [{ hostName: 'ann', currentPlayers: 4, maxPlayers: 8 }]
    })
    t.same(await rowsAfter(MATCHES, [list('20:00:00', 'ann 3/8')], [later]), [
      ['ann', '20:00:00', '20:00:00', 4, 8, 7, 2]
    ])
    const [row] = await control.rows('SELECT toDate(s.last_seen) AS day FROM match_session AS s FINAL')
    t.same(row, { day: '2026-03-20' })
  })

  await t.test(
    'a title that continues after days of silence keeps its matches when another title has a late list in the same step',
    async (t) => {
      const listed = (titleId: string, day: string, ...hosts: string[]) =>
        message(matchListTopic, {
          titleId,
          observedAt: `2026-03-${day}T20:00:00Z`,
          matches: hosts.map((hostName) => ({ hostName, currentPlayers: 1, maxPlayers: 8 }))
        })
      const before = [listed(TITLE, '10', 'ann'), listed('4d530065', '14', 'cem')]
      const hosts = await rowsAfter(
        'SELECT s.host AS host FROM match_session AS s FINAL WHERE NOT s.is_void ORDER BY host',
        before,
        [listed(TITLE, '14', 'bob'), listed('4d530065', '09', 'dan')]
      )
      t.same(hosts, [['ann'], ['bob'], ['cem'], ['dan']])
    }
  )

  await t.test('a late list without a lobby splits its match, a late one with it joins two', async (t) => {
    const split = [
      [list('20:00:00', 'ann', 'bob')],
      [list('20:02:00', 'ann', 'bob'), list('20:03:00', 'ann', 'bob')],
      [list('20:01:00', 'bob')]
    ]
    t.same(await rowsAfter(MATCHES, ...split), [
      ['ann', '20:00:00', '20:00:00', 1, 8, 1, 1],
      ['bob', '20:00:00', '20:03:00', 1, 8, 4, 4],
      ['ann', '20:02:00', '20:03:00', 1, 8, 2, 2]
    ])
    await emptyTables(control)
    t.same(await rowsAfter(MATCHES, ...split, [list('20:01:00', 'bob', 'ann 8/8')]), [
      ['ann', '20:00:00', '20:03:00', 8, 8, 11, 4],
      ['bob', '20:00:00', '20:03:00', 1, 8, 4, 4]
    ])
  })

  await t.test(
    'a match begins earlier when an earlier list has it, and the row of its old begin is void',
    async (t) => {
      const steps = [[list('20:01:00', 'ann 2/8')], [list('20:00:00', 'ann 3/8')]]
      t.same(await rowsAfter(MATCHES, ...steps), [['ann', '20:00:00', '20:01:00', 3, 8, 5, 2]])
      const rows = await control.rows('SELECT s.is_void AS is_void FROM match_session AS s FINAL ORDER BY s.first_seen')
      t.same(rows, [{ is_void: false }, { is_void: true }])
    }
  )

  await t.test('another list of the same instant replaces the whole list', async (t) => {
    const steps = [[list('20:00:00', 'ann 2/8'), list('20:01:00', 'ann 9/16', 'bob')], [list('20:01:00', 'ann 1/8')]]
    t.same(await rowsAfter(MATCHES, ...steps), [['ann', '20:00:00', '20:01:00', 2, 8, 3, 2]])
    t.same(await rowsOf('SELECT l.hosts, l.players FROM match_latest AS l FINAL'), [[['ann'], [1]]])
    t.same(
      await rowsOf(
        'SELECT h.lists, toUInt32(h.lobbies) AS lobbies, toUInt32(h.players) AS players FROM match_list_hour AS h FINAL'
      ),
      [[2, 2, 3]]
    )
  })

  await t.test(
    'of a list in order only that list is read; after a late one, all lists from the cut before it',
    async (t) => {
      const read: number[][] = []
      const watched: Tables = {
        ...engine.projections,
        json: async (sql, parameters) => {
          const bytes = await engine.projections.json(sql, parameters)
          const rows: { instants?: number[] }[] = JSON.parse(Buffer.from(bytes).toString())
          const instants = rows.flatMap((row) => row.instants ?? [])
          if (instants.length > 0) read.push(instants)
          return bytes
        }
      }
      const log = new MemoryLog()
      const at = (time: string) => Date.parse(`2026-03-14T${time}Z`)
      const readFor = async (...messages: ReturnType<typeof list>[]) => {
        read.length = 0
        log.append('match-list', messages)
        await projector.caughtUp()
        return read.flat()
      }
      const projector = projectorOn({ ...engine, projections: watched }, log)
      projector.start()
      await readFor(list('19:00:00', 'old'), list('19:30:00', 'zoe'), list('20:00:00', 'ann'))
      t.same(await readFor(list('20:01:00', 'ann')), [at('20:01:00')])
      t.same(await readFor(list('21:02:00', 'bob'), list('21:03:00', 'bob')), [at('21:02:00'), at('21:03:00')])
      t.same(await readFor(list('21:04:00')), [at('21:04:00')])
      t.same(await readFor(list('21:05:00', 'ann')), [at('21:05:00')], 'nothing is open, and nothing goes on')
      const late = [at('20:00:00'), at('20:01:00'), at('20:02:00'), at('21:02:00'), at('21:03:00'), at('21:04:00')]
      t.same(await readFor(list('20:02:00', 'bob')), [...late, at('21:05:00')])
      await projector.stop()
    }
  )

  await t.test('matches stay correct if another projector continues between two reads of a step', async (t) => {
    for (const [next, bobsLast] of [
      [list('20:02:00', 'ann'), '20:00:00'],
      [list('20:00:30', 'ann', 'bob'), '20:00:30']
    ] as const) {
      await emptyTables(control)
      const log = new MemoryLog()
      log.append('match-list', [list('20:00:00', 'ann', 'bob'), list('20:01:00', 'ann')])
      await runToHead(engine, log)
      let reads = 0
      const overtaken: Tables = {
        ...engine.projections,
        json: async (sql, parameters) => {
          reads += 1
          if (reads === 2) {
            log.append('match-list', [list('20:03:00', 'ann')])
            await runToHead(engine, log)
          }
          return await engine.projections.json(sql, parameters)
        }
      }
      log.append('match-list', [next])
      await runToHead({ loader: engine.loader, projections: overtaken }, log)
      const bobs = bobsLast === '20:00:00' ? [1, 1] : [2, 2]
      t.same(await rowsOf(MATCHES), [
        ['ann', '20:00:00', '20:03:00', 1, 8, 4, 4],
        ['bob', '20:00:00', bobsLast, 1, 8, ...bobs]
      ])
    }
  })

  await t.test('a projector that was stopped before it stored does not replace newer matches of others', async (t) => {
    const log = new MemoryLog()
    log.append('match-list', [list('20:00:00', 'ann')])
    await runToHead(engine, log)
    const isLoaded = async (next: number) =>
      (await Checkpoints.read(storeOver(control))).next(loadCheckpoint('match-list'), 0, 0) >= next
    let isFirst = true
    const frozen: Tables = {
      ...engine.projections,
      insert: async (table, columns, body) => {
        if (table === 'match_session__0' && isFirst) {
          isFirst = false
          log.append('match-list', [list('20:01:00', 'bob'), list('20:03:00')])
          while (!(await isLoaded(4))) await new Promise(setImmediate)
          await runToHead(engine, log)
        }
        await engine.projections.insert(table, columns, body)
      }
    }
    log.append('match-list', [list('20:02:00', 'ann', 'bob')])
    await runToHead({ loader: engine.loader, projections: frozen }, log, { isShared: true })
    t.same(await rowsOf(MATCHES), [
      ['ann', '20:00:00', '20:00:00', 1, 8, 1, 1],
      ['bob', '20:01:00', '20:02:00', 1, 8, 2, 2],
      ['ann', '20:02:00', '20:02:00', 1, 8, 1, 1]
    ])
  })

  await t.test('correct rows are not written again', async (t) => {
    let written = 0
    const watched: Tables = {
      ...engine.projections,
      insert: async (table, columns, body) => {
        if (table === 'match_session__0' && !(body instanceof Uint8Array)) written += body.rows
        await engine.projections.insert(table, columns, body)
      }
    }
    const log = new MemoryLog()
    log.append('match-list', [list('20:00:00', 'ann', 'bob'), list('20:01:00', 'ann')])
    await runToHead({ loader: engine.loader, projections: watched }, log)
    t.equal(written, 2)
    await control.execute('TRUNCATE TABLE checkpoint')
    await runToHead({ loader: engine.loader, projections: watched }, log)
    t.equal(written, 2, 'the step once more')
    log.append('match-list', [list('20:02:00', 'ann')])
    await runToHead({ loader: engine.loader, projections: watched }, log)
    t.equal(written, 3, 'only the match that goes on')
  })
})
