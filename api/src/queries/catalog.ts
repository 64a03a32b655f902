import { createHash } from 'node:crypto'
import { Refusal, type ServingTables, titleKey, withServing } from '@gamenet/schemas'
import type { ReadTables } from '../read-tables.js'
import { type Boards, boardDescriptionCache } from './board-descriptions.js'
import { titlesOfBoardsAndMatches } from './leaderboard.js'
import { type Query, rowsOf } from './query.js'
import { titleFacts } from './title.js'
import { newestTitleCounts } from './title-count.js'
import { servingCache } from './versioned-cache.js'

/*
 * described   at least one source has named the title; other titles are known only by a count, a board or a match
 * bare name   a name without an id after it
 * shown name  the name in lists, keys and paths: the bare name, or `Name [titleid]` if another title has the same name.
 *             Of titles with one name, that with the newest count has it bare, else the one with the lowest id
 */

/** Known facts about a title; `""` if unknown. */
export type Title = {
  readonly titleId: string
  readonly isDescribed: boolean
  /** The plain name; the id of a title that is not described. */
  readonly name: string
  /** The unique name. */
  readonly shownName: string
  readonly title: string
  readonly publisher: string
  readonly releaseDate: string
  readonly image: string
}

/** All titles at one moment. */
export type Catalog = {
  /**
   * Returns the title of a path or a query: 8 hexadecimal digits are an id, anything else is a name, compared without
   * case and with their blanks collapsed.
   */
  byGame(idOrName: string): Title | undefined
  byId(titleId: string): Title | undefined
  /** Returns the title, or for an unknown id a title with the id as its name. */
  named(titleId: string): Title
  /** Returns the described titles in the order of their shown names. */
  described(): readonly Title[]
  /** Returns a digest of the shown names of all described titles; equal in every process. */
  digest(): string
}

/** A title's field in the table `title`. */
export type TitleFact = {
  readonly titleId: string
  readonly field: string
  readonly value: string
}
/** The instant of a title's newest count. */
export type NewestCount = { readonly titleId: string; readonly countedAtMs: number }

/** Facts that several answers need, from the tables that each of them reads. */
export type CatalogCache = {
  /** Returns the catalog as of the newest known change. Rejects when the tables are needed and unavailable. */
  newest(serving: ServingTables): Promise<Catalog>
  /**
   * As `newest`, but returns the previous catalog, if any, while the tables are busy or unavailable: good enough to
   * resolve a name.
   */
  held(serving: ServingTables): Promise<Catalog>
  /** Returns the boards as of the newest known change. */
  boards(serving: ServingTables): Promise<Boards>
}

const MINUTE_MS = 60_000

/** The rows of a part of the catalog, and their data version. */
type Part<Row> = { readonly version: number; readonly rows: readonly Row[] }

type CacheNeeds = {
  readonly tables: ReadTables
  versionOf(dependency: { projection: string; toMs?: number }): number
  /** Default: `Date.now`. */
  now?(): number
}

/** Caches the titles and the boards. */
export function catalogCache(needs: CacheNeeds): CatalogCache {
  const ofServing = servingCache((serving) => titleCache({ ...needs, tables: withServing(needs.tables, serving) }))
  let last: Catalog | undefined
  const newest = async (serving: ServingTables): Promise<Catalog> => {
    last = await ofServing(serving)()
    return last
  }
  return {
    newest,
    boards: boardDescriptionCache(needs),
    held: async (serving) => {
      try {
        return await newest(serving)
      } catch (error) {
        if (last === undefined || !(error instanceof Refusal)) throw error
        return last
      }
    }
  }
}

/** Caches the titles of tables. Reads only parts whose data version has changed. */
function titleCache(needs: CacheNeeds): () => Promise<Catalog> {
  let facts: Part<TitleFact> = { version: -1, rows: [] }
  let counts: Part<NewestCount> = { version: -1, rows: [] }
  let others: Part<{ titleId: string }> = { version: -1, rows: [] }
  let cached: { key: string; catalog: Catalog } | undefined
  let loading: { key: string; catalog: Promise<Catalog> } | undefined

  const part = async <Row, Bound extends { to?: number }>(
    held: Part<Row>,
    version: number,
    question: Query<Bound, Row>,
    bound: Bound
  ): Promise<Part<Row>> =>
    held.version < version ? { version, rows: await rowsOf(needs.tables, question, bound) } : held

  const load = async (key: string, versions: Versions, to: number): Promise<Catalog> => {
    const [newFacts, newCounts, newOthers] = await Promise.all([
      part(facts, versions.facts, titleFacts, { to }),
      part(counts, versions.counts, newestTitleCounts, { to }),
      part(others, versions.others, titlesOfBoardsAndMatches, {})
    ])
    // Boards change constantly but rarely add a title, so the catalog is usually kept. Known titles stay known.
    const isSame = newFacts === facts && newCounts === counts && newOthers.rows.length === others.rows.length
    ;[facts, counts, others] = [newFacts, newCounts, newOthers]
    const ids = others.rows.map(({ titleId }) => titleId)
    cached = { key, catalog: isSame && cached !== undefined ? cached.catalog : catalogOf(facts.rows, counts.rows, ids) }
    return cached.catalog
  }

  return () => {
    // The end of the minute. A change behind it (a clock was ahead) counts when its time has come.
    const toMs = (Math.floor((needs.now ?? Date.now)() / MINUTE_MS) + 1) * MINUTE_MS
    const versions = {
      facts: needs.versionOf({ projection: 'title', toMs }),
      counts: needs.versionOf({ projection: 'title-latest', toMs }),
      others: Math.max(...OTHERS.map((projection) => needs.versionOf({ projection })))
    }
    const key = Object.values(versions).join('/')
    if (cached?.key === key) return Promise.resolve(cached.catalog)
    if (loading?.key === key) return loading.catalog
    // One after another: an older load that ends late must not replace a newer one.
    const before = loading?.catalog.catch(() => undefined) ?? Promise.resolve()
    const catalog = before.then(() => load(key, versions, toMs))
    const mine = { key, catalog }
    loading = mine
    const done = (): void => {
      if (loading === mine) loading = undefined
    }
    catalog.then(done, done)
    return catalog
  }
}

type Versions = { readonly facts: number; readonly counts: number; readonly others: number }

/** The other sources of titles, besides facts and counts. */
const OTHERS = ['leaderboard', 'leaderboard-entry', 'match-latest'] as const

/** Builds a catalog from the tables' facts; `others` are titles known from elsewhere. */
export function catalogOf(
  facts: readonly TitleFact[],
  counts: readonly NewestCount[],
  others: readonly string[] = []
): Catalog {
  const countedAt = new Map(counts.map(({ titleId, countedAtMs }) => [titleId, countedAtMs]))
  const described = describedTitles(facts, countedAt)
  const byId = new Map<string, Title>()
  for (const titleId of [...countedAt.keys(), ...others]) byId.set(titleId, undescribed(titleId))
  for (const title of described) byId.set(title.titleId, title)
  const byName = new Map(described.map((title) => [titleKey(title.shownName), title]))
  for (const title of described) {
    // A link created while another title had the bare name still works.
    const withId = titleKey(numbered(title.name, title.titleId))
    if (!byName.has(withId)) byName.set(withId, title)
  }
  let sorted: readonly Title[] | undefined
  let digest: string | undefined
  const inOrder = (): readonly Title[] => {
    sorted ??= described.sort((a, b) => compareNames(a.shownName, b.shownName))
    return sorted
  }
  return {
    byGame: (idOrName) => (isTitleId(idOrName) ? byId.get(idOrName.toLowerCase()) : byName.get(titleKey(idOrName))),
    byId: (titleId) => byId.get(titleId),
    named: (titleId) => byId.get(titleId) ?? undescribed(titleId),
    described: inOrder,
    digest: () => {
      digest ??= createHash('sha256')
        .update(JSON.stringify(inOrder().map((title) => title.shownName)))
        .digest('base64url')
      return digest
    }
  }
}

/** Compares names for lists: in English order, then by code points. */
export function compareNames(a: string, b: string): number {
  // UTF-8 bytes are ordered like code points; UTF-16 units are not.
  return collator.compare(a, b) || Buffer.compare(Buffer.from(a), Buffer.from(b))
}

const collator = new Intl.Collator('en')

function describedTitles(facts: readonly TitleFact[], countedAt: ReadonlyMap<string, number>): Title[] {
  const fieldsById = new Map<string, Map<string, string>>()
  const sharers = new Map<string, string[]>()
  for (const { titleId, field, value } of facts) {
    const fields = fieldsById.get(titleId) ?? new Map<string, string>()
    fieldsById.set(titleId, fields.set(field, value))
    if (field !== 'name') continue
    const key = titleKey(value)
    const ids = sharers.get(key)
    if (ids === undefined) sharers.set(key, [titleId])
    else ids.push(titleId)
  }
  const bareNames = new Set<string>()
  const bareIds = new Set<string>()
  for (const [key, ids] of sharers) {
    const [first] = ids.sort((a, b) => (countedAt.get(b) ?? -1) - (countedAt.get(a) ?? -1) || (a < b ? -1 : 1))
    // A name that looks like an id could not be requested, so it is never bare.
    if (first === undefined || isTitleId(key)) continue
    bareNames.add(key)
    bareIds.add(first)
  }
  const titles: Title[] = []
  for (const [titleId, fields] of fieldsById) {
    const name = fields.get('name')
    if (name === undefined) continue
    let shownName = bareIds.has(titleId) ? name : numbered(name, titleId)
    // A title may really be called `Name [titleid]`; it keeps its name.
    while (!bareIds.has(titleId) && bareNames.has(titleKey(shownName))) shownName = numbered(shownName, titleId)
    titles.push({
      titleId,
      isDescribed: true,
      name,
      shownName,
      title: fields.get('title') ?? '',
      publisher: fields.get('publisher') ?? '',
      releaseDate: fields.get('release_date') ?? '',
      image: fields.get('image') ?? ''
    })
  }
  return titles
}

function undescribed(titleId: string): Title {
  return {
    titleId,
    isDescribed: false,
    name: titleId,
    shownName: titleId,
    title: '',
    publisher: '',
    releaseDate: '',
    image: ''
  }
}

const numbered = (name: string, titleId: string): string => `${name} [${titleId}]`

/** Returns whether a text is an id, which is then never a name. */
export const isTitleId = (text: string): boolean => /^[0-9a-f]{8}$/i.test(text)
