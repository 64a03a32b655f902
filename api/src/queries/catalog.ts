import { createHash } from 'node:crypto'
import { nameKey, Refusal } from '@gamenet/schemas'
import type { ReadTables } from '../read-tables.js'
import { type Boards, boardCache } from './board-cache.js'
import { titlesOfBoardsAndMatches } from './leaderboard.js'
import { type Query, rowsOf } from './query.js'
import { titleFacts } from './title.js'
import { newestTitleCounts } from './title-count.js'

/*
 * described   at least one source has said what the title is called; others are known by a count, a board or a match alone
 * bare name   a name as it is, without an id behind it
 * shown name  what a title is listed, keyed and asked for as: its bare name, or `Name [titleid]` where another title
 *             has the same name. Of the titles of one name, that with the newest count, else the lowest id, has it bare
 */

/** What is known of a title. What is not known is `""`. */
export type Title = {
  readonly titleId: string
  readonly isDescribed: boolean
  /** The plain name; the id of a title that is not described. */
  readonly name: string
  /** The name that no other title has. */
  readonly shownName: string
  readonly title: string
  readonly publisher: string
  readonly releaseDate: string
  readonly image: string
}

/** All titles at one moment. */
export type Catalog = {
  /** The title that a path or a query names: 8 hexadecimal digits are an id, all else is a name, compared without case. */
  byGame(idOrName: string): Title | undefined
  byId(titleId: string): Title | undefined
  /** The title, or for an id that nothing is known of, one that has the id as its name. */
  named(titleId: string): Title
  /** The described titles in the order of their shown names. */
  described(): readonly Title[]
  /** A digest of the shown names of all described titles; equal in every process. */
  digest(): string
}

/** A title's field as the table `title` has it. */
export type TitleFact = {
  readonly titleId: string
  readonly field: string
  readonly value: string
  readonly nameKey: string
}
/** When a title was counted last. */
export type NewestCount = { readonly titleId: string; readonly countedAtMs: number }

export type CatalogCache = {
  /** The catalog as the newest known change left it. Rejects when the tables have to be asked and cannot be. */
  newest(): Promise<Catalog>
  /** The same, but while the tables are busy or away the one before, if there is one: good enough to resolve a name. */
  held(): Promise<Catalog>
  /** What lists say of boards, as the newest known change left it. */
  boards(): Promise<Boards>
}

/** What a part of the catalog was made of, and the data version that it has. */
type Part<Row> = { readonly version: number; readonly rows: readonly Row[] }

/** Keeps the titles in memory. The tables are asked again only for the part whose data version has moved. */
export function catalogCache(needs: {
  readonly tables: ReadTables
  versionOf(dependency: { projection: string }): number
}): CatalogCache {
  let facts: Part<TitleFact> = { version: -1, rows: [] }
  let counts: Part<NewestCount> = { version: -1, rows: [] }
  let others: Part<{ titleId: string }> = { version: -1, rows: [] }
  let cached: { key: string; catalog: Catalog } | undefined
  let loading: { key: string; catalog: Promise<Catalog> } | undefined

  const part = async <Row>(
    held: Part<Row>,
    version: number,
    question: Query<Record<string, never>, Row>
  ): Promise<Part<Row>> => (held.version < version ? { version, rows: await rowsOf(needs.tables, question, {}) } : held)

  const load = async (key: string, versions: Versions): Promise<Catalog> => {
    const [newFacts, newCounts, newOthers] = await Promise.all([
      part(facts, versions.facts, titleFacts),
      part(counts, versions.counts, newestTitleCounts),
      part(others, versions.others, titlesOfBoardsAndMatches)
    ])
    // Boards change all the time and hardly ever bring a title: no new catalog then. Titles never become unknown.
    const isSame = newFacts === facts && newCounts === counts && newOthers.rows.length === others.rows.length
    ;[facts, counts, others] = [newFacts, newCounts, newOthers]
    const ids = others.rows.map(({ titleId }) => titleId)
    cached = { key, catalog: isSame && cached !== undefined ? cached.catalog : catalogOf(facts.rows, counts.rows, ids) }
    return cached.catalog
  }

  const newest = (): Promise<Catalog> => {
    const versions = {
      facts: needs.versionOf({ projection: 'title' }),
      counts: needs.versionOf({ projection: 'title-latest' }),
      others: Math.max(...OTHERS.map((projection) => needs.versionOf({ projection })))
    }
    const key = Object.values(versions).join('/')
    if (cached?.key === key) return Promise.resolve(cached.catalog)
    if (loading?.key === key) return loading.catalog
    // One after the other: an older load that ends late must not take the place of a newer one.
    const before = loading?.catalog.catch(() => undefined) ?? Promise.resolve()
    const catalog = before.then(() => load(key, versions))
    const mine = { key, catalog }
    loading = mine
    const done = (): void => {
      if (loading === mine) loading = undefined
    }
    catalog.then(done, done)
    return catalog
  }

  return {
    newest,
    boards: boardCache(needs),
    held: async () => {
      try {
        return await newest()
      } catch (error) {
        if (cached === undefined || !(error instanceof Refusal)) throw error
        return cached.catalog
      }
    }
  }
}

type Versions = { readonly facts: number; readonly counts: number; readonly others: number }

/** The other sources that make a title known, besides facts and counts. */
const OTHERS = ['leaderboard', 'leaderboard-entry', 'match-latest'] as const

/** Folds what the tables know of titles into a catalog; `others` are titles that are known by something else. */
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
  const byName = new Map(described.map((title) => [nameKey(title.shownName), title]))
  for (const title of described) {
    // A link made while another title had the bare name still works.
    const withId = nameKey(numbered(title.name, title.titleId))
    if (!byName.has(withId)) byName.set(withId, title)
  }
  let sorted: readonly Title[] | undefined
  let digest: string | undefined
  const inOrder = (): readonly Title[] => {
    sorted ??= described.sort((a, b) => compareNames(a.shownName, b.shownName))
    return sorted
  }
  return {
    byGame: (idOrName) => (isTitleId(idOrName) ? byId.get(idOrName.toLowerCase()) : byName.get(nameKey(idOrName))),
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

/** The order of names wherever they are listed: as English sorts them, then by code points. */
export function compareNames(a: string, b: string): number {
  // UTF-8 bytes have the order of code points, UTF-16 units have not.
  return collator.compare(a, b) || Buffer.compare(Buffer.from(a), Buffer.from(b))
}

const collator = new Intl.Collator('en')

function describedTitles(facts: readonly TitleFact[], countedAt: ReadonlyMap<string, number>): Title[] {
  const fieldsById = new Map<string, Map<string, string>>()
  const sharers = new Map<string, string[]>()
  for (const { titleId, field, value, nameKey: key } of facts) {
    const fields = fieldsById.get(titleId) ?? new Map<string, string>()
    fieldsById.set(titleId, fields.set(field, value))
    if (field !== 'name') continue
    const ids = sharers.get(key)
    if (ids === undefined) sharers.set(key, [titleId])
    else ids.push(titleId)
  }
  const bareNames = new Set<string>()
  const bareIds = new Set<string>()
  for (const [key, ids] of sharers) {
    const [first] = ids.sort((a, b) => (countedAt.get(b) ?? -1) - (countedAt.get(a) ?? -1) || (a < b ? -1 : 1))
    // A name that reads as an id could never be asked for, so it is never bare.
    if (first === undefined || isTitleId(key)) continue
    bareNames.add(key)
    bareIds.add(first)
  }
  const titles: Title[] = []
  for (const [titleId, fields] of fieldsById) {
    const name = fields.get('name')
    if (name === undefined) continue
    let shownName = bareIds.has(titleId) ? name : numbered(name, titleId)
    // Somebody may be called `Name [titleid]` in truth; that title keeps its name.
    while (!bareIds.has(titleId) && bareNames.has(nameKey(shownName))) shownName = numbered(shownName, titleId)
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

function numbered(name: string, titleId: string): string {
  return `${name} [${titleId}]`
}

function isTitleId(text: string): boolean {
  return /^[0-9a-f]{8}$/i.test(text)
}
