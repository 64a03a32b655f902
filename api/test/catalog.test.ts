import { equal } from 'node:assert/strict'
import { FIRST_GENERATION, Refusal, titleKey } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { catalogCache, catalogOf, compareNames, type NewestCount, type TitleFact } from '../src/queries/catalog.js'
import type { ReadTables } from '../src/read-tables.js'
import { servingAt } from './support/test-app.js'

const named = (titleId: string, name: string): TitleFact => ({
  titleId,
  field: 'name',
  value: name
})
const counted = (titleId: string, countedAtMs: number): NewestCount => ({ titleId, countedAtMs })

test('a title is found by its id and by its name, in any case', async (t) => {
  const catalog = catalogOf([named('4d530001', "Fable II: Ä / # & ' + ½")], [])
  t.equal(catalog.byGame('4D530001')?.titleId, '4d530001')
  t.equal(catalog.byGame("fABLE ii: ä / # & ' + ½")?.titleId, '4d530001')
  t.equal(catalog.byGame("FABLE II: A\u0308 / # & ' + 1\u20442")?.titleId, '4d530001', 'composed or not')
  t.equal(catalog.byGame(" Fable  II: Ä / # & ' +\u00a0½ ")?.titleId, '4d530001', 'however many blanks')
  t.equal(catalogOf([named('4d530002', ' two  blanks')], []).byGame('two blanks')?.titleId, '4d530002')
  t.equal(catalog.byGame('Fable II'), undefined)
})

test('the bare name shared by titles belongs to the one with the newest count, else to the lowest id', async (t) => {
  const facts = [named('00000003', 'Halo'), named('00000002', 'HALO'), named('00000001', 'Halo')]
  const shown = (counts: NewestCount[]) =>
    ['00000001', '00000002', '00000003'].map((id) => catalogOf(facts, counts).named(id).shownName)
  t.same(shown([]), ['Halo', 'HALO [00000002]', 'Halo [00000003]'])
  t.same(shown([counted('00000002', 5), counted('00000003', 4)]), ['Halo [00000001]', 'HALO', 'Halo [00000003]'])
  t.same(shown([counted('00000003', 5), counted('00000002', 5)]), ['Halo [00000001]', 'HALO', 'Halo [00000003]'])
  const catalog = catalogOf(facts, [counted('00000002', 5)])
  t.equal(catalog.byGame('halo')?.titleId, '00000002')
  t.equal(catalog.byGame('halo [00000003]')?.titleId, '00000003')
  t.equal(catalog.byGame('halo [00000002]')?.titleId, '00000002', 'a link to the numbered name outlives the change')
  t.same(catalog.named('00000003').name, 'Halo', 'the plain name stays plain')
})

test('a name of 8 hexadecimal digits is never bare, because it would be read as an id', async (t) => {
  const catalog = catalogOf([named('00000001', 'Deadbeef')], [counted('deadbeef', 1)])
  t.equal(catalog.byGame('deadbeef')?.titleId, 'deadbeef')
  t.equal(catalog.named('00000001').shownName, 'Deadbeef [00000001]')
  t.equal(catalog.byGame('Deadbeef [00000001]')?.titleId, '00000001')
})

test('a title that is only counted has its id as its name and is not described', async (t) => {
  const catalog = catalogOf([named('00000001', 'Halo')], [counted('000000aa', 1)])
  t.match(catalog.byId('000000aa'), { name: '000000aa', shownName: '000000aa', isDescribed: false, image: '' })
  t.equal(catalog.byId('000000ab'), undefined)
  t.same(catalog.named('000000ab').name, '000000ab')
  t.same(
    catalog.described().map(({ titleId }) => titleId),
    ['00000001']
  )
})

test('every described title has a unique shown name by which it is found, with any names', async () => {
  const ids = fc.constantFrom('00000001', '00000002', '00000003', 'abcdef12')
  const names = fc.oneof(
    fc.constantFrom(
      'Halo',
      'halo',
      'HALO',
      'Halo [00000001]',
      'Halo [00000002]',
      'halo [00000001] [00000001]',
      'ABCDEF12',
      '__proto__'
    ),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 3 })
  )
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(ids, names), { selector: ([id]) => id }),
      fc.uniqueArray(fc.tuple(ids, fc.integer({ min: 0, max: 2 })), { selector: ([id]) => id }),
      (titles, counts) => {
        const catalog = catalogOf(
          titles.map(([id, name]) => named(id, name)),
          counts.map(([id, at]) => counted(id, at))
        )
        const described = catalog.described()
        equal(described.length, titles.length)
        equal(new Set(described.map(({ shownName }) => titleKey(shownName))).size, titles.length)
        for (const title of described) equal(catalog.byGame(title.shownName)?.titleId, title.titleId)
      }
    ),
    { seed: 1 }
  )
})

test('names are listed as English sorts them, then by code points', async (t) => {
  const names = ['zebra', 'Éclair', 'eclair', '1942', 'Zebra', 'b', 'B', 'apple']
  t.same([...names].sort(compareNames), ['1942', 'apple', 'b', 'B', 'eclair', 'Éclair', 'zebra', 'Zebra'])
  t.ok(compareNames('\u0000\u{1f600}', '\u0000\u{1f601}') !== 0, 'no two names are equal')
  t.ok(compareNames('a\u0000', 'a\u0001') < 0)
})

test('the digest differs for two lists of names and is the same for the same list', async (t) => {
  const digest = (...facts: TitleFact[]) => catalogOf(facts, []).digest()
  t.equal(
    digest(named('00000001', 'a'), named('00000002', 'b')),
    digest(named('00000004', 'b'), named('00000003', 'a'))
  )
  t.not(digest(named('00000001', 'a')), digest(named('00000001', 'b')))
  t.not(digest(named('00000001', 'a,b')), digest(named('00000001', 'a'), named('00000002', 'b')))
})

/** Tables with one title that count their reads and fail on request. */
function countingTables() {
  const queries = { facts: 0, counts: 0, others: 0, otherIds: [] as string[], failure: undefined as Error | undefined }
  const tables: ReadTables = {
    rows: async (sql) => {
      if (queries.failure !== undefined) throw queries.failure
      if (sql.includes('title_latest')) {
        queries.counts += 1
        return [{ titleId: '00000001', countedAtMs: queries.counts }]
      }
      if (sql.includes('record_history')) {
        queries.others += 1
        return queries.otherIds.map((titleId) => ({ titleId }))
      }
      queries.facts += 1
      return [{ titleId: '00000001', field: 'name', value: `Name ${queries.facts}` }]
    },
    json: async () => new Uint8Array()
  }
  return { queries, tables }
}

test('the tables are read again only for the changed part, and once for all waiters', async (t) => {
  const { queries, tables } = countingTables()
  const versions: Record<string, number> = { title: 1, 'title-latest': 1 }
  const cache = catalogCache({ tables, versionOf: ({ projection }) => versions[projection] ?? 0 })
  const all = await Promise.all([
    cache.newest(FIRST_GENERATION),
    cache.newest(FIRST_GENERATION),
    cache.held(FIRST_GENERATION)
  ])
  t.same([queries.facts, queries.counts], [1, 1])
  t.equal(new Set(all).size, 1)
  versions['title-latest'] = 2
  t.equal((await cache.newest(FIRST_GENERATION)).named('00000001').name, 'Name 1')
  t.same([queries.facts, queries.counts], [1, 2])
  versions.title = 3
  t.equal((await cache.newest(FIRST_GENERATION)).named('00000001').name, 'Name 2')
  t.same([queries.facts, queries.counts], [2, 2])
})

test('a title is known by only a board or a match, with its id as its name; boards without new titles make no new catalog', async (t) => {
  const { queries, tables } = countingTables()
  const versions: Record<string, number> = { title: 1, 'title-latest': 1 }
  const cache = catalogCache({ tables, versionOf: ({ projection }) => versions[projection] ?? 0 })
  const first = await cache.newest(FIRST_GENERATION)
  t.equal(first.byGame('0000BEEF'), undefined)
  queries.otherIds.push('0000beef', '00000001')
  versions['leaderboard-entry'] = 2
  const second = await cache.newest(FIRST_GENERATION)
  t.match(second.byGame('0000BEEF'), { titleId: '0000beef', isDescribed: false, name: '0000beef' })
  t.equal(second.byGame('00000001')?.name, 'Name 1', 'a title that is described stays so')
  t.equal(second.described().length, 1)
  versions['leaderboard-entry'] = 3
  versions['match-latest'] = 4
  t.equal(await cache.newest(FIRST_GENERATION), second)
  t.same([queries.facts, queries.counts, queries.others], [1, 1, 3])
})

test('while the tables are unavailable, the former catalog resolves names but is not returned as the newest', async (t) => {
  const { queries, tables } = countingTables()
  const versions: Record<string, number> = { title: 1, 'title-latest': 1 }
  const cache = catalogCache({ tables, versionOf: ({ projection }) => versions[projection] ?? 0 })
  queries.failure = new Refusal('engine_away')
  await t.rejects(cache.held(FIRST_GENERATION), { code: 'engine_away' }, 'there is none yet')
  queries.failure = undefined
  const first = await cache.newest(FIRST_GENERATION)
  versions.title = 2
  queries.failure = new Refusal('engine_busy')
  t.equal(await cache.held(FIRST_GENERATION), first)
  await t.rejects(cache.newest(FIRST_GENERATION), { code: 'engine_busy' })
  queries.failure = new Error('a defect')
  await t.rejects(cache.held(FIRST_GENERATION), { message: 'a defect' }, 'a defect is not hidden')
  queries.failure = undefined
  t.equal((await cache.newest(FIRST_GENERATION)).named('00000001').name, 'Name 2', 'and it recovers')
})

test('an answer that still uses former tables gets their titles, and leaves none for later answers', async (t) => {
  const { queries, tables } = countingTables()
  const read: unknown[] = []
  const rows: ReadTables['rows'] = async (sql, parameters) => {
    if (sql.includes('{title: ')) read.push(parameters?.title)
    return await tables.rows(sql, parameters)
  }
  const cache = catalogCache({ tables: { ...tables, rows }, versionOf: () => 1 })
  const former = await cache.newest(servingAt(0, 0))
  const newest = await cache.newest(servingAt(1, 1))
  t.not(newest, former)
  await cache.newest(FIRST_GENERATION)
  t.equal(await cache.newest(servingAt(1, 1)), newest)
  t.same(read, ['title__0', 'title__1', 'title__0'])
  t.equal(queries.facts, 3)
})
