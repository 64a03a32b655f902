import {
  achievements,
  boardKey,
  nameKey,
  type ReadPositions,
  Refusal,
  type ServingTables,
  veiled,
  withServing
} from '@gamenet/schemas'
import { z } from 'zod'
import { catalogCache } from '../queries/catalog.js'
import { playersCheckCache } from '../queries/players-check.js'
import { type Query, query, rowsOf } from '../queries/query.js'
import { newestTitleCounts } from '../queries/title-count.js'
import type { StreamedTables } from '../read-tables.js'
import { parseInput } from '../request/parameters.js'
import { type AnswerContext, type Dependency, type Endpoint, openListAge, type ResolveContext } from './endpoint.js'

/*
 * subject    rows that differ, as the projector groups them: those of a player on a board, of a title on a day
 * key        what a path asks for: a title, a board, a player, a user, an achievement, or nothing
 * candidate  an answer that reads a projection whose rows differ for its key, or for keys in general. Both states of
 *            the tables answer it; the answers that differ are the changed ones
 */

/** Rows that differ between two states of the tables. */
export type Subject = {
  readonly projection: string
  readonly table: string
  readonly key: Readonly<Record<string, unknown>>
  readonly rows: number
}

/** The rows that differ of what an answer reads, by what they say. */
export type Effect = Record<(typeof EFFECTS)[number], number>
const EFFECTS = ['records', 'ranks', 'peaks', 'unlocks', 'others'] as const

const EFFECT_OF: Readonly<Record<string, (typeof EFFECTS)[number]>> = {
  record_history: 'records',
  ...{ leaderboard_entry: 'ranks', player_entry: 'ranks', timed_entry: 'ranks', rank_reached: 'ranks' },
  ...{ title_count_hour: 'peaks', title_count_day: 'peaks', network_count_hour: 'peaks' },
  achievement_unlock: 'unlocks'
}

/** An answer that differs. */
export type ChangedAnswer = {
  readonly endpoint: string
  /** A title, `<title>/<board>`, a player, a user or an achievement; empty if the path has none. */
  readonly key: string
  readonly url: string
  readonly effect: Effect
}

type Needs = {
  readonly endpoints: readonly Endpoint[]
  readonly subjects: readonly Subject[]
  readonly before: ServingTables
  readonly after: ServingTables
  readonly tables: StreamedTables
  readonly positions: ReadPositions
  readonly writes: AnswerContext['writes']
  readonly clock: Omit<ResolveContext, 'catalog' | 'openListAgeMs'>
  readonly foldRecords: AnswerContext['foldRecords']
  /** Most answers that are computed. */
  readonly candidatesMax: number
  readonly signal: AbortSignal
}

/**
 * Returns the answers that differ between two states of the tables at one instant, those with the greatest effect
 * first: of every path, with its default parameters, and of the period that differs if it takes one.
 */
export async function changedAnswers(
  needs: Needs
): Promise<{ readonly answers: readonly ChangedAnswer[]; readonly compared: number; readonly isComplete: boolean }> {
  const [before, after] = [new AnswersOf(needs, needs.before), new AnswersOf(needs, needs.after)]
  const parts = new SubjectsByKey(needs.subjects)
  const answers: ChangedAnswer[] = []
  let compared = 0
  const { keys, areAll } = await keysOf(needs, parts, [before, after])
  for (const { kind, text, given } of keys) {
    for (const endpoint of needs.endpoints.filter((each) => kindOf(each) === kind)) {
      const own = Object.fromEntries(pathOf(endpoint).map((name) => [name, given[PARTS[name] ?? ''] ?? '']))
      const reads = [...(await before.reads(endpoint, own)), ...(await after.reads(endpoint, own))]
      if (!parts.touch(reads)) continue
      const of = parts.of({ kind, text }, new Set(reads.map(({ projection }) => projection)))
      for (const query of variantsOf(endpoint, of, needs.clock.nowMs)) {
        if (compared === needs.candidatesMax) return { answers: ranked(answers), compared, isComplete: false }
        needs.signal.throwIfAborted()
        compared += 1
        if (!(await differ(before, after, endpoint, { ...own, ...query }))) continue
        answers.push({ endpoint: endpoint.operationId, key: text, url: urlOf(endpoint, own, query), effect: of.effect })
      }
    }
  }
  return { answers: ranked(answers), compared, isComplete: areAll }
}

/** While rows of other tables arrive, both answers change: only two equal ones around the other one are comparable. */
const TRIES = 5

async function differ(before: AnswersOf, after: AnswersOf, endpoint: Endpoint, given: Given): Promise<boolean> {
  let first = await before.answer(endpoint, given)
  for (let tries = 0; tries < TRIES; tries += 1) {
    const other = await after.answer(endpoint, given)
    if (other === first) return false
    const again = await before.answer(endpoint, given)
    if (again === first) return true
    first = again
  }
  return true
}

function ranked(answers: ChangedAnswer[]): ChangedAnswer[] {
  const order = (a: ChangedAnswer, b: ChangedAnswer) => {
    const kind = EFFECTS.find((each) => a.effect[each] !== b.effect[each])
    return kind === undefined ? 0 : b.effect[kind] - a.effect[kind]
  }
  return answers.sort(order)
}

type Given = Readonly<Record<string, unknown>>

/** The answers of one state of the tables at one instant. */
class AnswersOf {
  readonly #needs: Needs
  readonly #context: Omit<AnswerContext, 'positions'>
  readonly serving: ServingTables

  constructor(needs: Needs, serving: ServingTables) {
    this.#needs = needs
    this.serving = serving
    const now = () => needs.clock.nowMs
    const cached = { tables: needs.tables, versionOf: () => 0, now }
    const [catalog, playersChecked] = [catalogCache(cached), playersCheckCache(cached)]
    this.#context = {
      tables: withServing(needs.tables, serving),
      foldRecords: needs.foldRecords,
      writes: needs.writes,
      signal: needs.signal,
      catalog: () => catalog.newest(serving),
      boards: () => catalog.boards(serving),
      playersCheckedMs: () => playersChecked(serving)
    }
  }

  /** Returns what an answer reads; nothing if the request is refused. */
  async reads(endpoint: Endpoint, given: Given): Promise<readonly Dependency[]> {
    const resolved = await this.#resolved(endpoint, given)
    return 'refused' in resolved ? [] : endpoint.reads(resolved.value)
  }

  /** Returns the body, or the sentence of a refusal. */
  async answer(endpoint: Endpoint, given: Given): Promise<string> {
    const resolved = await this.#resolved(endpoint, given)
    if ('refused' in resolved) return resolved.refused
    const positions = (names: readonly string[]) => this.#needs.positions(this.serving, names)
    const answered = await orRefused(() => endpoint.answer(resolved.value, { ...this.#context, positions }))
    if ('refused' in answered) return answered.refused
    const { body } = answered.value
    return body instanceof Uint8Array ? Buffer.from(body).toString() : JSON.stringify(body)
  }

  async rows<Params extends Given, Row>(question: Query<Params, Row>, parameters: Params): Promise<Row[]> {
    return await rowsOf(this.#context.tables, question, parameters, { signal: this.#needs.signal })
  }

  async titles(): Promise<string[]> {
    const counted = await this.rows(newestTitleCounts, { to: this.#needs.clock.nowMs })
    return [...(await this.#context.catalog()).described(), ...counted].map(({ titleId }) => titleId)
  }

  async #resolved(endpoint: Endpoint, given: Given) {
    const { clock } = this.#needs
    const openListAgeMs = openListAge(clock.periodSeconds?.matches)
    const context = { ...clock, openListAgeMs, catalog: this.#context.catalog }
    return await orRefused(async () => await endpoint.resolve(parseInput(endpoint.input, given), context))
  }
}

/** A refusal is an answer, too, unless the engine is busy or away. */
async function orRefused<Value>(run: () => Promise<Value>): Promise<{ value: Value } | { refused: string }> {
  try {
    return { value: await run() }
  } catch (error) {
    if (!(error instanceof Refusal) || error.status >= 500) throw error
    return { refused: `${error.status} ${error.message}` }
  }
}

type Part = { readonly effect: Effect; firstDay?: string; lastDay?: string }

/** The subjects by the keys of paths, and by projection. */
class SubjectsByKey {
  /** By a key, then by projection. */
  readonly #byKey = new Map<string, Map<string, Part>>()
  readonly subjects: readonly Subject[]
  /** The keys of dependencies, by projection. */
  readonly #touched = new Map<string, Set<string>>()

  constructor(subjects: readonly Subject[]) {
    this.subjects = subjects
    for (const subject of subjects) {
      const { projection, key } = subject
      const touched = this.#touched.get(projection) ?? new Set<string>()
      this.#touched.set(projection, touched.add(dependencyKey(key)))
      for (const each of [NOTHING, ...keysIn(key)]) this.#add(idOf(each), subject)
    }
  }

  /** Whether an answer with these dependencies may differ. */
  touch(reads: readonly Dependency[]): boolean {
    return reads.some(({ projection, key }) => {
      const touched = this.#touched.get(projection)
      return touched !== undefined && (key === undefined || touched.has(key) || touched.has(''))
    })
  }

  /** Returns the effect on an answer, and the days that differ. */
  of(key: Pick<Key, 'kind' | 'text'>, projections: ReadonlySet<string>): Part {
    const all: Part = { effect: noEffect() }
    for (const [projection, part] of this.#byKey.get(idOf(key)) ?? []) if (projections.has(projection)) addTo(all, part)
    return all
  }

  #add(id: string, { projection, table, key, rows }: Subject): void {
    const parts = this.#byKey.get(id) ?? new Map<string, Part>()
    this.#byKey.set(id, parts)
    const part = parts.get(projection) ?? { effect: noEffect() }
    parts.set(projection, part)
    const days = key.day === undefined ? {} : { firstDay: String(key.day), lastDay: String(key.day) }
    addTo(part, { effect: { ...noEffect(), [EFFECT_OF[table] ?? 'others']: rows }, ...days })
  }
}

function noEffect(): Effect {
  return { records: 0, ranks: 0, peaks: 0, unlocks: 0, others: 0 }
}

function addTo(part: Part, { effect, firstDay, lastDay }: Part): void {
  for (const each of EFFECTS) part.effect[each] += effect[each]
  if (firstDay === undefined || lastDay === undefined) return
  if (part.firstDay === undefined || firstDay < part.firstDay) part.firstDay = firstDay
  if (part.lastDay === undefined || lastDay > part.lastDay) part.lastDay = lastDay
}

/** The key of a row as changes are announced with; empty if any key may be affected. */
function dependencyKey(key: Given): string {
  const { title_id: titleId, leaderboard_id: leaderboardId, user_key: userKey, source } = key
  if (leaderboardId !== undefined) return boardKey({ titleId: String(titleId), leaderboardId: Number(leaderboardId) })
  return String(titleId ?? userKey ?? source ?? '')
}

type Kind = 'title' | 'board' | 'player' | 'user' | 'achievement' | 'none'
/** A key of paths, and the values of its parameters by their part. */
type Key = { readonly kind: Kind; readonly text: string; readonly given: Readonly<Record<string, string>> }

/** The parts of keys that the parameters of paths are. */
const PARTS: Readonly<Record<string, string>> = {
  ...{ game: 'title', titleId: 'title', leaderboardId: 'board', playerName: 'player', username: 'user' },
  ...{ achievementKey: 'achievement', hours: 'hours' }
}
const HOURS = '24'

function pathOf({ path }: Endpoint): string[] {
  return path.match(/(?<=:)\w+/g) ?? []
}

/** Returns the kind of key that a path asks for; undefined if its answers have no URL, or another key. */
function kindOf(endpoint: Endpoint): Kind | undefined {
  const parts = pathOf(endpoint).map((name) => PARTS[name])
  if (endpoint.method === 'POST' || parts.includes(undefined)) return undefined
  const kinds = ['board', 'player', 'user', 'achievement', 'title'] as const
  return kinds.find((kind) => parts.includes(kind)) ?? 'none'
}

const NOTHING: Key = { kind: 'none', text: '', given: {} }

/** Names of players and users may be equal to other keys. */
function idOf({ kind, text }: Pick<Key, 'kind' | 'text'>): string {
  return `${kind} ${text}`
}

function title(titleId: unknown): Key {
  return { kind: 'title', text: String(titleId), given: { title: String(titleId), hours: HOURS } }
}

function board(titleId: unknown, leaderboardId: unknown): Key {
  const given = { title: String(titleId), board: String(leaderboardId) }
  return { kind: 'board', text: `${given.title}/${given.board}`, given }
}

function named(kind: 'player' | 'user' | 'achievement', name: unknown): Key {
  return { kind, text: String(name), given: { [kind]: String(name) } }
}

/** Returns the keys of paths that a row is about. */
function keysIn(key: Given): Key[] {
  const { title_id: titleId, leaderboard_id: leaderboardId, player, user_key: user, rater_key: rater } = key
  const unlocked = achievements.find(({ id }) => id === key.achievement_id)
  return [
    ...(titleId === undefined ? [] : [title(titleId)]),
    ...(leaderboardId === undefined ? [] : [board(titleId, leaderboardId)]),
    ...(player === undefined ? [] : [named('player', player)]),
    ...[user, rater].flatMap((each) => (each === undefined ? [] : [named('user', each)])),
    ...(unlocked === undefined ? [] : [named('achievement', veiled(unlocked).key)])
  ]
}

/** Keys of one list of a statement. */
const LISTED_MAX = 5000

const boardsOfTitles = query({
  params: z.object({ titles: z.array(z.string()), limit: z.int() }),
  row: z.object({ titleId: z.string(), leaderboardId: z.int() }),
  sql: `
    SELECT DISTINCT e.title_id AS titleId, e.leaderboard_id AS leaderboardId
    FROM {leaderboard_entry: Identifier} AS e WHERE e.title_id IN {titles: Array(String)} LIMIT {limit: UInt32}`
})

const playersOfBoards = query({
  params: z.object({ titles: z.array(z.string()), boards: z.array(z.int()), limit: z.int() }),
  row: z.object({ player: z.string() }),
  sql: `
    SELECT DISTINCT e.player AS player FROM {leaderboard_entry: Identifier} AS e
    WHERE (e.title_id, e.leaderboard_id) IN
      (SELECT arrayJoin(arrayZip({titles: Array(String)}, {boards: Array(UInt32)})))
    LIMIT {limit: UInt32}`
})

const usersOfPlayers = query({
  params: z.object({ players: z.array(z.string()), limit: z.int() }),
  row: z.object({ user: z.string() }),
  sql: `
    SELECT DISTINCT u.user_key AS user FROM (
      SELECT g.user_key AS user_key FROM {user_gamertag: Identifier} AS g
      WHERE g.gamertag_key IN {players: Array(String)}
      UNION ALL
      SELECT p.user_key AS user_key FROM {profile: Identifier} AS p
      WHERE p.gamertag_key IN {players: Array(String)} OR p.user_key IN {players: Array(String)}
      UNION ALL
      SELECT l.user_key AS user_key FROM {presence_latest: Identifier} AS l
      WHERE l.user_key IN {players: Array(String)}
    ) AS u LIMIT {limit: UInt32}`
})

/**
 * Returns the keys whose answers may differ, those of most rows first: those of the rows, then those that answers
 * combine with them: boards of a title, players of a board, whose ranks may move, their users, and all titles, which
 * are ranked.
 */
async function keysOf(
  { candidatesMax }: Needs,
  { subjects }: SubjectsByKey,
  states: readonly AnswersOf[]
): Promise<{ readonly keys: readonly Key[]; readonly areAll: boolean }> {
  const keys = new Map<string, Key>([[idOf(NOTHING), NOTHING]])
  const add = (found: readonly Key[]) => {
    for (const key of found) keys.set(idOf(key), keys.get(idOf(key)) ?? key)
  }
  const of = (kind: Kind) => [...keys.values()].filter((key) => key.kind === kind).map(({ given }) => given)
  add(subjects.flatMap(({ key }) => keysIn(key)))
  let areAll = true
  const addFound = async (find: (state: AnswersOf) => Promise<Key[]>) => {
    for (const state of states) {
      const found = await find(state)
      areAll &&= found.length < candidatesMax
      add(found)
    }
  }
  const listed = <Value>(values: readonly Value[]) => {
    areAll &&= values.length <= LISTED_MAX
    return values.slice(0, LISTED_MAX)
  }
  const limit = candidatesMax
  const renamed = subjects.filter(({ projection }) => projection === 'title' || projection === 'leaderboard')
  const titles = listed([...new Set(renamed.map(({ key }) => String(key.title_id)))])
  await addFound(async (state) =>
    (await state.rows(boardsOfTitles, { titles, limit })).map((row) => board(row.titleId, row.leaderboardId))
  )
  const ofBoards = listed(of('board'))
  const boards = ofBoards.map((each) => Number(each.board))
  const ofTitles = ofBoards.map((each) => each.title ?? '')
  await addFound(async (state) =>
    (await state.rows(playersOfBoards, { titles: ofTitles, boards, limit })).map(({ player }) =>
      named('player', player)
    )
  )
  const players = listed(of('player').map((each) => nameKey(each.player ?? '')))
  await addFound(async (state) =>
    (await state.rows(usersOfPlayers, { players, limit })).map(({ user }) => named('user', user))
  )
  for (const state of states) add((await state.titles()).map(title))
  return { keys: [...keys.values()], areAll }
}

/**
 * Returns the queries of an endpoint that are compared: without parameters, and for the days that differ.
 */
function variantsOf(
  { input: { shape } }: Endpoint,
  { firstDay, lastDay }: Part,
  nowMs: number
): Readonly<Record<string, string>>[] {
  if (firstDay === undefined || lastDay === undefined) return [{}]
  const after = new Date(Date.parse(lastDay) + DAY_MS).toISOString().slice(0, 10)
  const isPast = Date.parse(after) <= nowMs
  const period = 'from' in shape && 'to' in shape ? [{ from: firstDay, ...(isPast ? { to: after } : {}) }] : []
  const past = 'asOf' in shape && isPast ? [{ asOf: after }] : []
  return [{}, ...period, ...past]
}

const DAY_MS = 86_400_000

function urlOf({ path }: Endpoint, own: Given, given: Readonly<Record<string, string>>): string {
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(own[name])))
  const query = new URLSearchParams(given)
  return query.size === 0 ? filled : `${filled}?${query}`
}
