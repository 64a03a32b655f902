import { test } from 'tap'
import { type Projection, projections, storeOver, type Tables } from '../src/index.js'
import { definitionOf, projectionOf, ServingDefinitions } from '../src/project/serving-definitions.js'
import { storeDefinitions } from '../src/store/projection-definition.js'
import { latch } from './latch.js'
import { lockedPasses } from './locks.js'
import { openTables } from './pipeline.js'

test('what is new waits while nobody can be alone, and all else serves', async (t) => {
  const { control } = await openTables()
  const [known = [], all = []] = [['title-count'], ['title-count', 'title-count-hour']].map((names) =>
    projections.filter(({ name }) => names.includes(name))
  )
  await new ServingDefinitions(storeOver(control), known, true).register(lockedPasses())
  const newer = new ServingDefinitions(storeOver(control), all, true)
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
  const serving = new ServingDefinitions(storeOver({ ...control, insert }), all, false)
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
  const first = new ServingDefinitions(storeOver({ ...control, insert }), older, true)
  const second = new ServingDefinitions(storeOver({ ...control, rows }), newer, true)
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

test('a definition of an earlier program, with bare names of tables, is this one', async (t) => {
  const { control } = await openTables()
  const all = projections.filter(({ name }) => ['title-count-hour', 'leaderboard-entry'].includes(name))
  const earlier = (each: Projection) => definitionOf(each).replaceAll(/\{(\w+): Identifier\}/g, '$1')
  for (const each of all) {
    t.notMatch(earlier(each), 'Identifier')
    t.equal(definitionOf(projectionOf(earlier(each))), definitionOf(each))
  }
  const store = storeOver(control)
  await store.do(
    storeDefinitions,
    1,
    all.map((each) => ({ name: each.name, definition: earlier(each) }))
  )
  const serving = new ServingDefinitions(store, all, false)
  t.same(await serving.current(), all)
  t.notOk(serving.isOutdated('title-count-hour'))
})
