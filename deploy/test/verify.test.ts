import { cp, readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { openPglite, type Postgres } from '@gamenet/engines'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { until } from '@gamenet/engines/testing'
import { publish } from '@gamenet/ingest'
import {
  importRetractionTopic,
  instantOf,
  networkCountTopic,
  pause,
  presenceTopic,
  titleCountTopic
} from '@gamenet/schemas'
import { test } from 'tap'
import { claimDataDirectory } from '../src/data-directory/data-directory.js'
import { eraseUser, reapplyMissingErasures } from '../src/operate/erase/erase-user.js'
import { Status } from '../src/operate/status/operation.js'
import { damageOfTables } from '../src/operate/verify/damage-of-tables.js'
import { VerifyReport } from '../src/stores/damage-report.js'
import { eraseFromWrites } from '../src/stores/ledger.js'
import { ask } from './service/ask.js'
import { filesOfParts, flipMiddle, flipPartsOf } from './service/damaged-files.js'
import { datasetsOf } from './service/dataset-proofs.js'
import { fill, needsOf, openWorld, sighting, USER, USERS } from './service/erasure-world.js'
import { gamenet, gamenetJson, openGamenet, spawnedGamenet } from './service/gamenet.js'
import { openTestWrites } from './service/open-engines.js'
import { damageFound, enginesOf } from './service/verified-world.js'

/* The short form of the corruption campaign: one damaged file of each kind, and its repair. */

const DAY = 'from=2017-02-17T00:00:00Z&to=2017-02-18T00:00:00Z'
const HOURS = Array.from({ length: 20 }, (_, hour) => `2017-02-17T${String(hour).padStart(2, '0')}:00:00Z,${hour + 40}`)
const QUIET = { UPSTREAM_URL: 'http://127.0.0.1:9', SCRAPE_NETWORK_SECONDS: '0', SCRAPE_GAMES_SECONDS: '0' }

test('damaged files are found, reported and repaired, or refused', async (t) => {
  const folder = t.testdir({
    'counts.csv': `observedAt,online\n${HOURS.join('\n')}\n`,
    'late.csv': 'observedAt,online\n2017-02-19T00:00:00Z,1\n',
    'sightings.csv': 'username,state,observedAt\nAnn,online,2017-02-17T00:00:00Z\n'
  })
  const whole = join(folder, 'whole')
  const environment = (name: string) => ({ DATA_DIR: join(folder, name), ...QUIET })
  const service = await openGamenet(t, environment('whole'))
  await gamenetJson(environment('whole'), ['import', 'network-count', join(folder, 'counts.csv')])
  await gamenetJson(environment('whole'), ['import', 'presence', join(folder, 'sightings.csv')])
  const path = '/api/data/network-count/2017-02.parquet'
  const get = async (apiUrl: string) => Buffer.from(await (await fetch(apiUrl + path)).arrayBuffer())
  const revisions = async (apiUrl: string) => {
    const dataset = (await datasetsOf(apiUrl)).find(({ name }) => name === 'network-count')
    return dataset?.files.flatMap(({ newest, earlier }) => [newest, ...earlier]) ?? []
  }
  await get(service.apiUrl)
  await gamenetJson(environment('whole'), ['import', 'network-count', join(folder, 'late.csv')])
  const original = await get(service.apiUrl)
  const listed = await revisions(service.apiUrl)
  t.match(listed, [{ revision: 2 }, { revision: 1 }])
  const verified = async (name: string, run: typeof spawnedGamenet, ...more: string[]) => {
    const done = await run(environment(name), ['verify', '--json', ...more])
    t.same([done.code, done.stderr], [1, ''], 'the report says everything')
    return VerifyReport.parse(JSON.parse(done.stdout)).findings
  }

  const datasetsIn = (name: string) => join(folder, name, 'datasets', 'network-count')
  const files = async (name: string) => (await readdir(datasetsIn(name))).filter((file) => file.endsWith('.parquet'))
  const flipDatasets = async (name: string) => {
    for (const file of await files(name)) await flipMiddle(join(datasetsIn(name), file))
  }
  await flipDatasets('whole')
  const damagedDatasets = await verified('whole', gamenet)
  t.match(
    damagedDatasets,
    [/it is made again when it is requested/, /this earlier revision is then no longer served/].map((repair) => ({
      part: 'datasets',
      what: /^datasets\/network-count\/2017-02\.\w+\.parquet does not match its SHA-256$/,
      cost: 'readers of this file fail or read wrong values',
      repair
    }))
  )
  await flipDatasets('whole')
  await service.stop()
  const damageIn = async (name: string) => Status.parse(await gamenetJson(environment(name), ['status'])).damage

  await t.test('damaged tables are rebuilt, bookkeeping and datasets are made again', async (t) => {
    await cp(whole, join(folder, 'rows'), { recursive: true })
    const [part = ''] = await filesOfParts(join(folder, 'rows'), 'event_network_count__0')
    await flipMiddle(part)
    await flipDatasets('rows')
    await reverseKeys(join(folder, 'rows', 'writes'))
    const repair = 'none needed: the service rebuilds it (gamenet status)'
    t.match(await verified('rows', spawnedGamenet), [
      ...damagedDatasets,
      { part: 'seals', what: /keys of 1 people cannot decrypt their events of presence 1\/0, from offset 0 on/ },
      { part: 'tables', what: /^part all_\S+ of \w+ is damaged: .*CHECKSUM/, repair }
    ])
    for (const file of await files('rows')) await rm(join(datasetsIn('rows'), file))
    await reverseKeys(join(folder, 'rows', 'writes'))
    for (const table of ['data_change', 'checkpoint', 'schema_migration'])
      await flipPartsOf(join(folder, 'rows'), table)
    t.match(
      (await verified('rows', gamenet)).filter(({ what }) => what.startsWith('Rows of ')),
      [
        { what: /^Rows of checkpoint were damaged and are lost: they are written again\.$/, repair: /^none needed/ },
        { what: /^Rows of data_change were damaged/, repair: /^none needed/ },
        { what: /^Rows of schema_migration were damaged and are lost: migrations/, repair: 'as the finding says' }
      ],
      'the damaged parts are detached, and nothing else shows them'
    )
    const service = await openGamenet(t, environment('rows'))
    const read = async () => await ask(`${service.apiUrl}/api/network-stats/online-24h?${DAY}`)
    const isRight = async () => {
      await pause(300)
      const { status, body } = await read()
      if (status === 200) t.match(body, { length: HOURS.length })
      else t.match({ status, body }, { status: 503, body: { error: /is damaged on the disk/ } })
    }
    await until(async () => (await damageIn('rows')).length === 0, isRight)
    // Answers read the new generation a moment later.
    await until(async () => (await read()).status !== 503, 100)
    t.match(await read(), { status: 200, body: { length: HOURS.length } })
    t.ok((await get(service.apiUrl)).equals(original))
    t.same(await revisions(service.apiUrl), listed)
    t.equal((await fetch(service.apiUrl + listed[1]?.url)).status, 404)
    const sound = VerifyReport.parse(await gamenetJson(environment('rows'), ['verify']))
    t.same(sound.findings, [], 'nothing is damaged in a running service')
    t.ok(sound.bytes > 1e4, `${sound.bytes} bytes`)
    await service.stop()
    await flipMiddle(join(folder, 'rows', 'writes', 'base', '5', '3456'))
    const findings = await verified('rows', gamenet)
    const of = (name: string) => findings.filter(({ part }) => part === name)
    t.match(
      of('writes'),
      [{ what: /of the write side cannot be read: .*base\/5\/3456/, repair: /gamenet restore/ }],
      'a table of the write side is damaged'
    )
  })

  await t.test('a read table that lost rows is found by a comparison with its events, and rebuilt', async (t) => {
    const name = 'lost'
    await cp(whole, join(folder, name), { recursive: true })
    const [file = ''] = await filesOfParts(join(folder, name), 'network_count__0')
    await rm(dirname(dirname(file)), { recursive: true })
    const service = await openGamenet(t, environment(name))
    const what = /^network_count: it differs in \d+ rows from what network-count makes of its events/
    t.match(await verified(name, gamenet, '--deep'), [{ part: 'tables', what, repair: /^none needed/ }])
    const read = async () => await ask(`${service.apiUrl}/api/network-stats/online-24h?${DAY}`)
    await until(async () => (await damageIn(name)).length === 0 && (await read()).status !== 503, 300)
    t.match(await read(), { body: { length: HOURS.length } })
    await service.stop()
  })

  await t.test('a write side that was deleted is reported and refused, until an operator accepts it', async (t) => {
    await cp(whole, join(folder, 'emptied'), { recursive: true })
    await rm(join(folder, 'emptied', 'writes'), { recursive: true })
    const older = /^PostgreSQL is older than the tables: it has people up to number 0 and changes up to 0, the tables/
    const finding = { part: 'writes', what: older, repair: /^put a newer copy .* gamenet restore DIR.*--accept-older/ }
    t.match(await verified('emptied', gamenet), [finding])
    const refused = await gamenet({ ...environment('emptied'), PORT: '0', OPERATOR_PORT: '0' }, ['start'])
    t.match(refused, { code: 1, stderr: older })
    await (await openGamenet(t, environment('emptied'), 'all', { acceptsOlder: true })).stop()
  })
})

test('no event is missing because its user is erased meanwhile', async (t) => {
  const world = await openWorld(t, (folder) => openTestWrites(t, folder))
  await fill(world)
  // Enough for blocks of events that are not unpacked.
  for (const username of USERS) {
    const sightings = Array.from({ length: 600 }, (_, minute) => sighting(username, 60 + minute))
    await publish(world.log, presenceTopic, sightings, { source: '/test' }, world.people)
  }
  await world.projector.caughtUp()
  const { clickhouse, folder, log, writes } = world
  const left = [...USERS]
  const erasing: typeof clickhouse.rebuild = {
    ...clickhouse.rebuild,
    rows: async (sql, ...given) => {
      const username = sql.includes('event_presence') ? left.pop() : undefined
      if (username !== undefined) await eraseUser(needsOf(world), username)
      return await clickhouse.rebuild.rows(sql, ...given)
    }
  }
  const engines = { ...enginesOf(world), clickhouse: { ...clickhouse, rebuild: erasing } }
  await t.test('no key is lost of a user whose erasure older tables lack', async (t) => {
    const putBack = await keepPeople(writes)
    await eraseFromWrites(writes, USER)
    await writes.script('UPDATE erasure SET done_at = now()')
    t.same((await damageFound({ ...engines, clickhouse })).findings, [])
    await putBack()
  })

  const { findings } = await damageFound(engines)
  t.same(left, [], 'all were erased, each before another statement')
  t.same(findings, [])

  await t.test('a table that is dropped while tables are checked is not damaged', async (t) => {
    const { control, rebuild } = clickhouse
    await control.execute('CREATE TABLE title__9 AS title__0')
    const dropping: typeof rebuild = {
      ...rebuild,
      rows: async (sql, ...given) => {
        if (sql === 'CHECK TABLE title__9') await control.execute('DROP TABLE title__9 SYNC')
        return await rebuild.rows(sql, ...given)
      }
    }
    t.same(await damageOfTables({ control, rebuild: dropping }, undefined, () => undefined), [])
  })

  await t.test('a write side that a full disk does not let start is not damaged', async (t) => {
    const directory = await claimDataDirectory(join(folder, 'full'), { program: '0', engines: {} })
    const writes = async () => {
      throw new Error('PANIC: could not write to file "pg_logical/replorigin_checkpoint.tmp": No space left on device')
    }
    await t.rejects(damageFound({ ...engines, directory, writes }), {
      message: /^The disk of the data directory .* is full/
    })
  })

  const countTitles = async (first: number) => {
    const counts = Array.from({ length: 5 }, (_, n) => ({
      titleId: '4d530064',
      online: n,
      observedAt: minute(first + n)
    }))
    await publish(log, titleCountTopic, counts, { source: '/test' })
  }

  await t.test(
    'an undone import exempts neither its topic nor another from the search for missing events',
    async (t) => {
      const importId = 'a'.repeat(32)
      const count = { online: 7, observedAt: minute(0) }
      await publish(log, networkCountTopic, [count], { source: `/import/${importId}`, importId })
      await publish(
        log,
        networkCountTopic,
        [minute(2), minute(3)].map((observedAt) => ({ online: 7, observedAt })),
        {
          source: '/test'
        }
      )
      await countTitles(0)
      const undone = { importId, topic: networkCountTopic.name, observedAt: minute(1) }
      await publish(log, importRetractionTopic, [undone], { source: '/test' })
      await world.projector.caughtUp()
      await world.projector.importUndos.undo(importId, networkCountTopic.name, () => undefined)
      t.same((await damageFound(engines)).findings, [])
      await clickhouse.control.execute('DELETE FROM event_title_count__0 WHERE offset = 3')
      await clickhouse.control.execute('DELETE FROM event_network_count__0 WHERE offset = 2')
      t.match((await damageFound(engines)).findings, [
        {
          part: 'checkpoints',
          what: 'event_title_count holds 4 events of title-count 1/0 below 5; the log has 5',
          cost: 'answers lack these events',
          repair:
            'repair the write side first if it is damaged; then load them again: `gamenet rebuild start <projection> --from-log`, for a projection that reads the table'
        },
        { what: 'event_network_count holds 1 events of network-count 1/0 below 3; the log has 2' }
      ])
    }
  )

  await t.test('events that the log no longer has are reported with their cost and the way out', async (t) => {
    await world.projector.stop()
    await countTitles(5)
    await countTitles(10)
    const later = openEmbeddedLog({ path: join(folder, 'log'), epoch: 1, retentionMs: 1, now: () => Date.now() + 1000 })
    await later.trim()
    await later.close()
    t.match((await damageFound(engines)).findings, [
      {
        part: 'checkpoints',
        what: 'title-count 1/0 is loaded up to 5; the log has 10 to 15',
        cost: 'the topic is stalled; events that the log lost cannot be loaded again',
        repair:
          'gamenet gap list, then gamenet gap accept title-count; or stop the service and restore the newest backup: gamenet restore DIR'
      },
      { what: /^event_network_count holds 1 events/ }
    ])
  })
})

test('events of users who are not erased in an older write side are not to be loaded again', async (t) => {
  const world = await openWorld(t, (folder) => openTestWrites(t, folder))
  await fill(world)
  const putBack = await keepPeople(world.writes)
  await eraseUser(needsOf(world), USER)
  await putBack()
  const older = { part: 'writes', what: /^the write side lacks 1 erasures/, cost: /^the next start erases/ }
  const found = async () => (await damageFound(enginesOf(world))).findings
  t.match(await found(), [older])
  t.equal((await found()).length, 1)
  await world.clickhouse.control.execute(`DELETE FROM event_presence__0 WHERE user_key = 'ben' AND offset % 2 = 1`)
  t.match(await found(), [
    older,
    { part: 'checkpoints', repair: /^repair the write side first .*; then load them again/ }
  ])
  await reapplyMissingErasures({ ...needsOf(world), tables: world.clickhouse.control, isOnlyReader: true })
  t.match(await found(), [{ part: 'checkpoints' }], 'as every start does')
})

function minute(n: number): string {
  return instantOf(Date.UTC(2026, 4, 2, 0, n))
}

/** Copies the rows of people; the result puts them back, without a ledger. */
async function keepPeople(writes: Postgres): Promise<() => Promise<void>> {
  const tables = ['person', 'profile', 'rating']
  for (const table of tables) await writes.script(`CREATE TABLE kept_${table} AS TABLE ${table}`)
  return async () => {
    for (const table of tables)
      await writes.script(
        `TRUNCATE ${table}; INSERT INTO ${table} OVERRIDING SYSTEM VALUE TABLE kept_${table}; DROP TABLE kept_${table}`
      )
    await writes.script('TRUNCATE erasure')
  }
}

/** Replaces the seal keys; a second call restores them. */
async function reverseKeys(directory: string): Promise<void> {
  const writes = await openPglite({ dir: directory })
  await writes.script(`UPDATE person SET seal_key = decode(reverse(encode(seal_key, 'hex')), 'hex')`)
  await writes.close()
}
