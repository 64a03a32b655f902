import { ratingTopic, topics } from '@gamenet/schemas'
import { test } from 'tap'
import { eventTableOf, eventTables } from '../src/events/event-tables.js'
import { readWholeBlocks, storeOver } from '../src/index.js'
import { projections } from '../src/projections/projections.js'
import { RowWriter } from '../src/rows/row-writer.js'
import { storeEvents } from '../src/store/event-table.js'
import { openTables } from './pipeline.js'

test('every topic has one event table and a projection', async (t) => {
  t.same(eventTables.map(({ topic }) => topic.name).sort(), topics.map(({ name }) => name).sort())
  for (const { topic } of eventTables) {
    t.ok(
      projections.some(({ from }) => from.name === topic.name),
      `${topic.name} is projected`
    )
  }
})

test('a block is whole if the table has all its events, and none is the first of a user', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control, { targets: new Map([['event_rating', 'event_rating__0']]) })
  const raterOf = (offset: number) => (offset === 2 * 512 + 3 ? 'ben' : 'ann')
  const events = eventTableOf(ratingTopic)
  const writer = new RowWriter(events.types)
  for (let offset = 0; offset < 5 * 512; offset += 1) {
    if (offset === 3 * 512 + 9) continue
    writer.add([1, 0, offset, '', '', offset, offset, 'dan', 'Dan', raterOf(offset), 'Ann', 5, null, 1])
  }
  await store.do(storeEvents, events, writer.take())
  const place = { epoch: 1, partition: 0, next: 5 * 512 - 1 }
  t.same(await store.do(readWholeBlocks, 'rating', place), { blockEvents: 512, blocks: new Set([1]) })
})

test('a projection that reads the table of another is listed after it', async (t) => {
  for (const [n, { name, after }] of projections.entries()) {
    if (after === undefined) continue
    t.ok(
      projections.slice(0, n).some((each) => each.name === after),
      `${name} after ${after}`
    )
  }
})
