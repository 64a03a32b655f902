import { instantOf, ratingTopic, topics } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { instantText } from '../src/events/event-table.js'
import { eventTableOf, eventTables } from '../src/events/event-tables.js'
import { readWholeBlocks, storeOver } from '../src/index.js'
import { projections } from '../src/projections/projections.js'
import { storeEvents } from '../src/store/event-table.js'
import { openTables } from './pipeline.js'

test('every topic has one event table, with the columns of the migrations, and a projection', async (t) => {
  const { control } = await openTables()
  t.same(eventTables.map(({ topic }) => topic.name).sort(), topics.map(({ name }) => name).sort())
  for (const { table, columns, topic } of eventTables) {
    const rows = await control.rows(
      `SELECT c.name AS name FROM system.columns AS c
       WHERE c.database = currentDatabase() AND c.table = {table: String} AND c.default_kind = '' ORDER BY c.position`,
      { table: `${table}__0` }
    )
    t.same(
      columns,
      rows.map(({ name }) => name),
      table
    )
    t.ok(
      projections.some(({ from }) => from.name === topic.name),
      `${topic.name} is projected`
    )
  }

  await control.execute(`CREATE TABLE instant (n UInt32, ts DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY n`)
  const edges = [0, 1, 999, 1000, 20_123, 1_234_500, 999_999_999_999, Date.UTC(2106, 0, 1) - 1]
  const drawn = fc.sample(fc.integer({ min: 0, max: Date.UTC(2106, 0, 1) - 1 }), 2000)
  const instants = [...edges, ...drawn, ...drawn.map((ms) => ms - (ms % 1000))]
  const lines = instants.map((ms, n) => JSON.stringify([n, instantText(instantOf(ms))]))
  await control.insert('instant', ['n', 'ts'], new TextEncoder().encode(`${lines.join('\n')}\n`))
  const stored = await control.rows('SELECT toUnixTimestamp64Milli(i.ts) AS ms FROM instant AS i ORDER BY i.n')
  t.same(
    stored.map(({ ms }) => Number(ms)),
    instants,
    'every instant is stored to the millisecond'
  )
})

test('a block of events is whole when the table has them all, and no user for the first time', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control, { targets: new Map([['event_rating', 'event_rating__0']]) })
  const raterOf = (offset: number) => (offset === 2 * 512 + 3 ? 'ben' : 'ann')
  const rows = Array.from({ length: 5 * 512 }, (_, offset) => {
    return [1, 0, offset, '', '', instantText(instantOf(offset)), 'dan', 'Dan', raterOf(offset), 'Ann', 5, null, 1]
  })
  const lines = rows.filter((_, offset) => offset !== 3 * 512 + 9).map((row) => `${JSON.stringify(row)}\n`)
  await store.do(storeEvents, eventTableOf(ratingTopic), new TextEncoder().encode(lines.join('')))
  const place = { epoch: 1, partition: 0, next: 5 * 512 - 1 }
  t.same(await store.do(readWholeBlocks, 'rating', place), { blockEvents: 512, blocks: new Set([1]) })
})

test('a projection that reads the table of another stands behind it', async (t) => {
  for (const [n, { name, after }] of projections.entries()) {
    if (after === undefined) continue
    t.ok(
      projections.slice(0, n).some((each) => each.name === after),
      `${name} after ${after}`
    )
  }
})
