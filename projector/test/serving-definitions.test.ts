import { test } from 'tap'
import { type Projection, projections, type Tables } from '../src/index.js'
import { definitionOf, ServingDefinitions } from '../src/store/serving-definitions.js'
import { latch } from './latch.js'
import { lockedPasses } from './locks.js'
import { openTables } from './pipeline.js'

test('what is new waits while nobody can be alone, and all else serves', async (t) => {
  const { control } = await openTables()
  const [known = [], all = []] = [['title-count'], ['title-count', 'title-count-hour']].map((names) =>
    projections.filter(({ name }) => names.includes(name))
  )
  await new ServingDefinitions(control, known, true).register(lockedPasses())
  const newer = new ServingDefinitions(control, all, true)
  await t.rejects(newer.register({ exclusive: () => Promise.reject(new Error('PostgreSQL is away')) }), /is away/)
  t.same(await newer.current(), known)
  await newer.register(lockedPasses())
  t.same(await newer.current(), all)
})

test('what was written down without an answer serves all the same', async (t) => {
  const { control } = await openTables()
  const all = projections.filter(({ name }) => name === 'title-count')
  let landed = async () => {}
  const insert: Tables['insert'] = async (...row) => {
    landed = () => control.insert(...row)
    throw new Error('the answer was lost')
  }
  const serving = new ServingDefinitions({ ...control, insert }, all, false)
  await t.rejects(serving.register(lockedPasses()), /was lost/)
  t.same(await serving.current(), [])
  await landed()
  await serving.register(lockedPasses())
  t.same(await serving.current(), all)
})

test('of two programs that come to empty tables at once the first one serves in both', async (t) => {
  const { control } = await openTables()
  const older = projections.filter(({ name }) => name === 'title-count')
  const newer = older.map(
    (each): Projection => (each.form === 'fold' ? each : { ...each, select: `${each.select} LIMIT 5` })
  )
  const [stores, looked] = [latch(), latch()]
  const insert: Tables['insert'] = async (...row) => {
    stores.open()
    await looked.opened
    // Time enough to look once more, and to store.
    for (let questions = 0; questions < 5; questions += 1) await control.rows('SELECT 1 AS one')
    await control.insert(...row)
  }
  const rows: Tables['rows'] = async (...asked) => {
    const found = await control.rows(...asked)
    looked.open()
    return found
  }
  const passes = lockedPasses()
  const first = new ServingDefinitions({ ...control, insert }, older, true)
  const second = new ServingDefinitions({ ...control, rows }, newer, true)
  const registered = first.register(passes)
  await stores.opened
  await Promise.all([registered, second.register(passes)])
  const stored = await control.rows('SELECT d.definition AS definition FROM projection_definition AS d')
  t.same(
    stored,
    older.map((each) => ({ definition: definitionOf(each) })),
    'the second had nothing to say'
  )
  for (const serving of [first, second]) t.same((await serving.current()).map(definitionOf), older.map(definitionOf))
  t.same(
    [first, second].map((serving) => serving.isOutdated('title-count')),
    [false, true]
  )
})
