import { test } from 'tap'
import { type Projection, projections, storeOver, type Tables } from '../src/index.js'
import { definitionOf, Generations, ownersOf } from '../src/project/generations.js'
import { nextId } from '../src/rebuild/leftovers.js'
import { namesOf, storeDefinitions } from '../src/store/generation.js'
import { latch } from './latch.js'
import { lockedPasses } from './locks.js'
import { openTables } from './pipeline.js'

test('what is new waits while nobody can be alone, and all else serves', async (t) => {
  const { control } = await openTables()
  const [known = [], all = []] = [['title-count'], ['title-count', 'title-count-hour']].map((names) =>
    projections.filter(({ name }) => names.includes(name))
  )
  await new Generations(storeOver(control), known).register(lockedPasses())
  const newer = new Generations(storeOver(control), all)
  await t.rejects(newer.register({ exclusive: () => Promise.reject(new Error('PostgreSQL is away')) }), /is away/)
  t.same((await newer.current()).projections, known)
  await newer.register(lockedPasses())
  t.same((await newer.current()).projections, all)
})

test('a projection is registered beside a rebuild that began before', async (t) => {
  const { control } = await openTables()
  const store = storeOver(control)
  const all = projections.filter(({ name }) => name === 'title-count')
  await store.do(
    storeDefinitions,
    all.map((each) => ({ projection: each.name, generation: 7, definition: definitionOf(each) }))
  )
  t.equal(await nextId(store), 8, 'a number is given once, even to an attempt that left nothing else')
  const generations = new Generations(store, all)
  await generations.register(lockedPasses())
  t.same((await generations.current()).projections, all)
})

test('a view of the first generation hides the checkpoints of another below it', async (t) => {
  const [owner] = ownersOf(projections)
  if (owner === undefined) throw new Error('there is no owner')
  const view = new Map([...namesOf(owner, 4), ...namesOf(owner, 0)])
  t.equal(view.get(owner.owner), owner.owner)
})

test('what was written down without an answer serves all the same', async (t) => {
  const { control } = await openTables()
  const all = projections.filter(({ name }) => name === 'title-count')
  let landed = async () => {}
  const insert: Tables['insert'] = async (...row) => {
    landed = () => control.insert(...row)
    throw new Error('the answer was lost')
  }
  const serving = new Generations(storeOver({ ...control, insert }), all)
  await t.rejects(serving.register(lockedPasses()), /was lost/)
  t.same((await serving.current()).projections, [])
  await landed()
  await serving.register(lockedPasses())
  t.same((await serving.current()).projections, all)
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
  const first = new Generations(storeOver({ ...control, insert }), older)
  const second = new Generations(storeOver({ ...control, rows }), newer)
  const registered = first.register(passes)
  await stores.opened
  await Promise.all([registered, second.register(passes)])
  const stored = await control.rows('SELECT d.definition AS definition FROM generation_definition AS d')
  t.same(
    stored,
    older.map((each) => ({ definition: definitionOf(each) })),
    'the second had nothing to say'
  )
  for (const serving of [first, second])
    t.same((await serving.current()).projections.map(definitionOf), older.map(definitionOf))
  t.same(
    [first, second].map((serving) => serving.isOutdated('title-count')),
    [false, true]
  )
})
