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
import { type AnswerContext, type Dependency, type Endpoint, openListAge, pathParameters } from './endpoint.js'

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
export type Effect = Readonly<Record<(typeof EFFECTS)[number], number>>
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

type Needs = Pick<AnswerContext, 'writes' | 'foldRecords'> & {
  readonly endpoints: readonly Endpoint[]
  readonly subjects: readonly Subject[]
  readonly before: ServingTables
  readonly after: ServingTables
  readonly tables: StreamedTables
  readonly positions: ReadPositions
  readonly clock: Omit<Parameters<Endpoint['resolve']>[1], 'catalog' | 'openListAgeMs'>
}

/** Each is computed from both tables, which takes some 20 ms. */
const CANDIDATES_MAX = 10_000

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
  const { keys, areAll } = await keysOf(needs, [before, after])
  for (const key of keys) {
    for (const endpoint of needs.endpoints.filter((each) => kindOf(each) === key.kind)) {
      const own = parametersOf(endpoint, key)
      const reads = [...(await before.reads(endpoint, own)), ...(await after.reads(endpoint, own))]
      const subjects = parts.of(key, reads)
      if (subjects === undefined) continue
      for (const query of variantsOf(endpoint, subjects, needs.clock.nowMs)) {
        if (compared === CANDIDATES_MAX) return { answers: ranked(answers), compared, isComplete: false }
        compared += 1
        if (!(await differ(before, after, endpoint, { ...own, ...query }))) continue
        const url = urlOf(endpoint, own, query)
        answers.push({ endpoint: endpoint.operationId, key: key.text, url, effect: effectOf(subjects) })
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
  return answers.sort((a, b) => EFFECTS.map((each) => b.effect[each] - a.effect[each]).find((by) => by !== 0) ?? 0)
}

type Given = Readonly<Record<string, unknown>>

/** The answers of one state of the tables at one instant. */
class AnswersOf {
  readonly #needs: Needs
  readonly #context: AnswerContext

  constructor(needs: Needs, serving: ServingTables) {
    this.#needs = needs
    const now = () => needs.clock.nowMs
    const cached = { tables: needs.tables, versionOf: () => 0, now }
    const [catalog, playersChecked] = [catalogCache(cached), playersCheckCache(cached)]
    this.#context = {
      tables: withServing(needs.tables, serving),
      positions: (names) => needs.positions(serving, names),
      foldRecords: needs.foldRecords,
      writes: needs.writes,
      signal: new AbortController().signal,
      catalog: () => catalog.newest(serving),
      boards: () => catalog.boards(serving),
      playersCheckedMs: () => playersChecked(serving)
    }
  }

  /** Returns what an answer reads; nothing if the request is refused. */
  async reads(endpoint: Endpoint, given: Given): Promise<readonly Dependency[]> {
    const read = async () => endpoint.reads(await this.#resolved(endpoint, given))
    return await orRefused<readonly Dependency[]>(read, () => [])
  }

  /** Returns the body, or the sentence of a refusal. */
  async answer(endpoint: Endpoint, given: Given): Promise<string> {
    const text = async () => {
      const { body } = await endpoint.answer(await this.#resolved(endpoint, given), this.#context)
      return body instanceof Uint8Array ? Buffer.from(body).toString() : JSON.stringify(body)
    }
    return await orRefused(text, (sentence) => sentence)
  }

  async rows<Params extends Given, Row>(question: Query<Params, Row>, parameters: Params): Promise<Row[]> {
    const { tables, signal } = this.#context
    return await rowsOf(tables, question, parameters, { signal })
  }

  /** Returns the ids of all titles. */
  async titles(): Promise<string[]> {
    const counted = await this.rows(newestTitleCounts, { to: this.#needs.clock.nowMs })
    return [...(await this.#context.catalog()).described(), ...counted].map(({ titleId }) => titleId)
  }

  async #resolved(endpoint: Endpoint, given: Given) {
    const { clock } = this.#needs
    const openListAgeMs = openListAge(clock.periodSeconds?.matches)
    const context = { ...clock, openListAgeMs, catalog: this.#context.catalog }
    return await endpoint.resolve(parseInput(endpoint.input, given), context)
  }
}

/** A refusal is an answer, too, unless the engine is busy or away. */
async function orRefused<Value>(run: () => Promise<Value>, refused: (sentence: string) => Value): Promise<Value> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof Refusal) || error.status >= 500) throw error
    return refused(`${error.status} ${error.message}`)
  }
}

/** The subjects by the keys of paths, and by what answers read. */
class SubjectsByKey {
  readonly #byKey = new Map<string, Subject[]>()
  /** The keys of dependencies, by projection. */
  readonly #touched = new Map<string, Set<string>>()

  constructor(subjects: readonly Subject[]) {
    for (const subject of subjects) {
      const { projection, key } = subject
      this.#touched.set(projection, (this.#touched.get(projection) ?? new Set()).add(dependencyKey(key)))
      for (const id of [NOTHING, ...keysIn(key)].map(idOf)) {
        const own = this.#byKey.get(id) ?? []
        own.push(subject)
        this.#byKey.set(id, own)
      }
    }
  }

  /** Returns the subjects of a key that an answer with these dependencies reads; undefined if it cannot differ. */
  of(key: Key, reads: readonly Dependency[]): readonly Subject[] | undefined {
    const mayDiffer = reads.some(({ projection, key }) => {
      const touched = this.#touched.get(projection)
      return touched !== undefined && (key === undefined || touched.has(key) || touched.has(''))
    })
    if (!mayDiffer) return undefined
    const projections = new Set(reads.map(({ projection }) => projection))
    return (this.#byKey.get(idOf(key)) ?? []).filter(({ projection }) => projections.has(projection))
  }
}

function effectOf(subjects: readonly Subject[]): Effect {
  const effect = { records: 0, ranks: 0, peaks: 0, unlocks: 0, others: 0 }
  for (const { table, rows } of subjects) effect[EFFECT_OF[table] ?? 'others'] += rows
  return effect
}

/** The key of a row as changes are announced with; empty if any key may be affected. */
function dependencyKey(key: Given): string {
  const { title_id: titleId, leaderboard_id: leaderboardId, user_key: userKey, source } = key
  if (leaderboardId !== undefined) return boardKey({ titleId: String(titleId), leaderboardId: Number(leaderboardId) })
  return String(titleId ?? userKey ?? source ?? '')
}

const KINDS = ['board', 'player', 'user', 'achievement', 'title', 'none'] as const
/** A key of paths: its text is `<title>/<board>` or one name. */
type Key = { readonly kind: (typeof KINDS)[number]; readonly text: string }

const NOTHING: Key = { kind: 'none', text: '' }

/** The parts of keys that the parameters of paths are. */
const PARTS: Readonly<Record<string, string>> = {
  ...{ game: 'title', titleId: 'title', leaderboardId: 'board', playerName: 'player', username: 'user' },
  ...{ achievementKey: 'achievement', hours: 'hours' }
}

/** Returns the parameters of an endpoint's path for a key of its kind. */
function parametersOf({ path }: Endpoint, { kind, text }: Key): Given {
  const [title, board] = text.split('/')
  const given: Given = { ...(kind === 'board' ? { title, board } : { [kind]: text }), hours: '24' }
  return Object.fromEntries([...pathParameters(path)].map((name) => [name, given[PARTS[name] ?? '']]))
}

/** Returns the kind of key that a path asks for; undefined if its answers have no URL, or another key. */
function kindOf({ method, path }: Endpoint): Key['kind'] | undefined {
  const parts = [...pathParameters(path)].map((name) => PARTS[name])
  if (method === 'POST' || parts.includes(undefined)) return undefined
  return KINDS.find((kind) => parts.includes(kind)) ?? 'none'
}

/** Names of players and users may be equal to other keys. */
const idOf = ({ kind, text }: Key): string => `${kind} ${text}`

/** Returns the keys of paths that a row is about. */
function keysIn({
  title_id: title,
  leaderboard_id: board,
  player,
  user_key: user,
  rater_key: rater,
  ...key
}: Given): Key[] {
  const unlocked = achievements.find(({ id }) => id === key.achievement_id)
  const found = [
    ['title', title],
    ['board', board === undefined ? undefined : `${title}/${board}`],
    ['player', player],
    ['user', user],
    ['user', rater],
    ['achievement', unlocked === undefined ? undefined : veiled(unlocked).key]
  ] as const
  return found.flatMap(([kind, text]) => (text === undefined ? [] : [{ kind, text: String(text) }]))
}

/** Keys of one list of a statement. */
const LISTED_MAX = 5000

/** The keys that answers combine with others: the boards of titles, the players of boards, and the users of players. */
const keysAround = query({
  params: z.object({
    titles: z.array(z.string()),
    boards: z.array(z.string()),
    players: z.array(z.string()),
    limit: z.int()
  }),
  row: z.object({ kind: z.enum(['board', 'player', 'user']), text: z.string() }),
  sql: `
    WITH entry AS (
      SELECT concat(e.title_id, '/', toString(e.leaderboard_id)) AS board, e.player AS player,
        e.player_key AS player_key
      FROM {leaderboard_entry: Identifier} AS e
      WHERE e.title_id IN {titles: Array(String)} OR board IN {boards: Array(String)}
    ),
    named AS (SELECT arrayJoin({players: Array(String)}) AS name UNION ALL SELECT n.player_key AS name FROM entry AS n)
    SELECT k.kind AS kind, k.text AS text
    FROM (
      SELECT DISTINCT 'board' AS kind, b.board AS text FROM entry AS b
      UNION ALL SELECT DISTINCT 'player' AS kind, p.player AS text FROM entry AS p
      UNION ALL SELECT DISTINCT 'user' AS kind, u.user_key AS text
      FROM (
        SELECT g.user_key AS user_key, g.gamertag_key AS name FROM {user_gamertag: Identifier} AS g
        UNION ALL SELECT f.user_key AS user_key, arrayJoin([f.gamertag_key, f.user_key]) AS name
        FROM {profile: Identifier} AS f
        UNION ALL SELECT l.user_key AS user_key, l.user_key AS name FROM {presence_latest: Identifier} AS l
      ) AS u
      WHERE u.name IN (SELECT a.name FROM named AS a)
    ) AS k
    LIMIT {limit: UInt32}`
})

/** Returns the keys whose answers may differ: those of rows, those around them, and all titles, which are ranked. */
async function keysOf(
  { subjects }: Needs,
  states: readonly AnswersOf[]
): Promise<{ readonly keys: readonly Key[]; readonly areAll: boolean }> {
  const keys = [NOTHING, ...subjects.flatMap(({ key }) => keysIn(key))]
  const textsOf = (kind: Key['kind']) => keys.flatMap((key) => (key.kind === kind ? [key.text] : []))
  const renamed = subjects.filter(({ projection }) => projection === 'title' || projection === 'leaderboard')
  const listed = [renamed.map(({ key }) => String(key.title_id)), textsOf('board'), textsOf('player').map(nameKey)]
  const lists = listed.map((texts) => [...new Set(texts)])
  const [titles = [], boards = [], players = []] = lists.map((texts) => texts.slice(0, LISTED_MAX))
  let areAll = lists.every(({ length }) => length <= LISTED_MAX)
  for (const state of states) {
    const found = await state.rows(keysAround, { titles, boards, players, limit: CANDIDATES_MAX })
    areAll &&= found.length < CANDIDATES_MAX
    keys.push(...found, ...(await state.titles()).map((text) => ({ kind: 'title', text }) as const))
  }
  return { keys: [...new Map(keys.map((key) => [idOf(key), key])).values()], areAll }
}

/**
 * Returns the queries of an endpoint that are compared: without parameters, and for the days that differ.
 */
function variantsOf(
  { input: { shape } }: Endpoint,
  subjects: readonly Subject[],
  nowMs: number
): Readonly<Record<string, string>>[] {
  const days = subjects.flatMap(({ key: { day } }) => (day === undefined ? [] : [String(day)])).sort()
  const [firstDay, lastDay] = [days[0], days.at(-1)]
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
