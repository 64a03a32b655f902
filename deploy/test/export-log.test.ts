import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { openChdb } from '@gamenet/engines'
import { test } from 'tap'
import { type Environment, gamenet, gamenetJson, openGamenet, plainWrites } from './service/gamenet.js'

const TABLES = ['title_count', 'title_count_hour', 'network_count', 'presence', 'presence_day']

test('an exported log gives equal tables on another machine; sealed events stay sealed', async (t) => {
  const directory = t.testdir()
  const writes = await plainWrites(t)
  const service = (name: string): Environment => ({
    DATA_DIR: join(directory, name),
    UPSTREAM_URL: 'http://127.0.0.1:9',
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0',
    ...writes
  })
  const file = async (name: string, lines: readonly string[]) => {
    await writeFile(join(directory, name), `${lines.join('\n')}\n`)
    return join(directory, name)
  }
  const first = service('first')
  const source = await openGamenet(t, first)
  const counts = Array.from({ length: 300 }, (_, n) => `4d53006${n % 3},${new Date(n * 60_000).toISOString()},${n}`)
  await gamenetJson(first, [
    'import',
    'title-count',
    await file('counts.csv', ['titleId,observedAt,online', ...counts])
  ])
  const sighting = (minute: number) =>
    `{"username":"LuckyBadger","state":"online","game":"Halo 2","observedAt":"2025-03-01T00:0${minute}:00Z"}`
  await gamenetJson(first, ['import', 'presence', await file('presence.ndjson', [sighting(0), sighting(1)])])
  const exported = join(directory, 'log.ndjson.gz')
  const report = await gamenetJson(first, ['export', 'log', exported])
  t.match(report, { file: exported, leftOut: 0 })
  const lines = gunzipSync(await readFile(exported))
    .toString()
    .trim()
    .split('\n')
  t.equal(lines.length, Number(Object(report).events))
  t.notMatch(lines.join('\n'), /LuckyBadger/i)
  t.match(JSON.parse(lines[0] ?? ''), {
    specversion: '1.0',
    type: 'gamenet.title-count.v1',
    id: 'title-count/4d530060@1970-01-01T00:00:00Z',
    partitionkey: '4d530060',
    datacontenttype: 'application/json',
    data: { titleId: '4d530060', online: 0 }
  })

  await t.test('a part of it, on standard output', async (t) => {
    const args = ['export', 'log', '-', '--topic', 'title-count', '--from', '1970-01-01T04:58:00Z']
    const { code, stdout } = await gamenet(first, args)
    t.equal(code, 0)
    t.same(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).data.online),
      [298, 299]
    )
  })

  const missing = await gamenet(first, ['export', 'log', join(directory, 'none', 'file')])
  t.match([missing.code, missing.stderr], [1, /cannot be written \(ENOENT\)/])
  t.equal((await gamenet(first, ['export', 'log', '--topic', 'nothing'])).code, 2)
  await source.stop()
  const expected = await tablesOf(join(directory, 'first'))
  t.same([expected.title_count?.length, expected.presence?.length], [300, 2])

  const second = service('second')
  const target = await openGamenet(t, second)
  for (const what of ['once', 'twice']) {
    t.match(await gamenetJson(second, ['import', 'log', exported]), [{ events: lines.length, rejected: 0 }], what)
  }

  await t.test('invalid lines are reported, all others are published', async (t) => {
    const event = JSON.parse(lines[0] ?? '')
    const bad = await file('bad.ndjson', [
      JSON.stringify(event),
      '{"half',
      JSON.stringify({ ...event, type: 'gamenet.nothing.v1' }),
      JSON.stringify({ ...event, data: undefined })
    ])
    const { code, stdout } = await gamenet(second, ['import', 'log', bad])
    t.equal(code, 1)
    t.match(
      stdout,
      /1 event published, 3 lines rejected\n {2}line 2: no CloudEvent.*\n {2}line 3: the type is "gamenet\.nothing\.v1"/
    )
  })

  await t.test('a line without end is refused with bounded memory', async (t) => {
    const endless = await file('endless.ndjson.gz', [])
    await writeFile(endless, gzipSync(`${lines[0]}\n${'x'.repeat(2 ** 26)}`))
    const { code, stdout, stderr } = await gamenet(second, ['import', 'log', endless])
    t.same([code, stdout], [2, ''])
    t.match(stderr, /^The log has a row that does not end within 16777216 bytes/m)
  })

  const again = join(directory, 'again.ndjson')
  await gamenetJson(second, ['export', 'log', again])
  await target.stop()
  t.same(await tablesOf(join(directory, 'second')), expected)

  const third = service('third')
  const last = await openGamenet(t, third)
  await gamenetJson(third, ['import', 'log', again])
  await last.stop()
  const counted = lines.map((line) => JSON.parse(line)).filter(({ id }) => id.startsWith('title-count/'))
  const recorded = new Map(counted.map(({ id, recordedtime }) => [id, recordedtime]))
  t.equal(recorded.size, 300)
  for (const name of ['first', 'second', 'third'])
    t.same(new Map(await recordedOf(join(directory, name))), recorded, `${name}: when the first log took each event`)
})

/** Returns when a log first took each count of a title, by the event's id. */
async function recordedOf(directory: string): Promise<[id: string, recordedAt: string][]> {
  const clickhouse = await openChdb({ path: join(directory, 'tables') })
  try {
    const rows = await clickhouse.control.rows(
      `SELECT concat('title-count/', t.title_id, '@', formatDateTime(t.observed_at, '%Y-%m-%dT%H:%i:%SZ', 'UTC')) AS id,
         toUnixTimestamp64Milli(t.recorded_at) AS ms
       FROM event_title_count AS t`
    )
    return rows.map(({ id, ms }) => [String(id), new Date(Number(ms)).toISOString()])
  } finally {
    await clickhouse.close()
  }
}

/** Returns the rows of some tables without the positions, which differ between logs. */
async function tablesOf(directory: string): Promise<Record<string, readonly Record<string, unknown>[]>> {
  const clickhouse = await openChdb({ path: join(directory, 'tables') })
  try {
    const tables: Record<string, readonly Record<string, unknown>[]> = {}
    for (const table of TABLES) {
      const columns = await clickhouse.control.rows(
        `SELECT c.name AS name FROM system.columns AS c WHERE c.database = currentDatabase() AND c.table = {table: String}
           AND c.name NOT IN ('position', 'version') AND c.default_kind = ''`,
        { table }
      )
      const names = columns.map(({ name }) => `t.${name}`).join(', ')
      tables[table] = await clickhouse.control.rows(`SELECT ${names} FROM ${table} AS t FINAL ORDER BY ALL`)
    }
    return tables
  } finally {
    await clickhouse.close()
  }
}
