import type { ClickHouse, Postgres } from '@gamenet/engines'
import { nameKey } from '@gamenet/schemas'
import type { UpstreamEntry } from '../../test/service/upstream.js'
import type { Facts } from './facts.js'
import {
  boardAt,
  boardsOfAll,
  IMPORT_FROM_S,
  importedFile,
  LOBBY_MOST_FROM,
  lobbiesAt,
  playersAt,
  REGISTERED_FROM,
  shownAt,
  stepOfOnline,
  stepOfTag,
  titleIds,
  versionOfScore
} from './world.js'

/*
 * Compares what is stored of each page with the page, and the write side with the acknowledged writes. What is computed
 * from that (rollups, changes, records) is compared with tables computed undisturbed from the same log. Each check
 * returns the differences that it found, as one sentence each.
 */

type Needs = {
  readonly facts: Facts
  readonly tables: ClickHouse
  /** Whether an interrupted append may have stored some of its events, as with several partitions. */
  readonly canBePartial: boolean
}
type Row = Record<string, unknown>

const IMPORTS_BEFORE = '2020-01-01'
const TEXTS_MAX = 5
/** Ingest waits 20 s for a page, and may be paused before it reads its clock. */
const READ_SECONDS_MAX = 60

export async function differencesFromShown(needs: Needs): Promise<string[]> {
  const { tables } = needs
  const [{ letters } = { letters: '?' }] = await tables.control.rows('SELECT count() AS letters FROM dead_letter FINAL')
  return [
    ...(String(letters) === '0' ? [] : [`${letters} messages are dead letters`]),
    ...(await countDifferences(needs)),
    ...(await importDifferences(needs)),
    ...(await matchDifferences(needs)),
    ...(await presenceDifferences(needs)),
    ...(await boardDifferences(needs))
  ]
}

function equal(what: string, found: unknown, wanted: unknown): string[] {
  const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)]
  return one === other ? [] : [`${what}: found ${one.slice(0, 600)}, expected ${other?.slice(0, 600)}`]
}

function grouped(rows: readonly Row[], column: string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const key = String(row[column])
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [row])
    else group.push(row)
  }
  return groups
}

/** Compares the counts with the home page: the rows of one instant are those of one page, all of them if the scrape completed. */
async function countDifferences({ facts, tables, canBePartial }: Needs): Promise<string[]> {
  const found: string[] = []
  const network = grouped(
    await tables.control.rows(`SELECT n.metric AS metric, toUnixTimestamp64Milli(n.ts) AS ms, n.value AS value
      FROM network_count AS n FINAL ORDER BY n.ts, n.metric`),
    'ms'
  )
  const titles = grouped(
    await tables.control.rows(`SELECT c.title_id AS titleId, toUnixTimestamp64Milli(c.ts) AS ms, c.online AS online,
        c.sessions AS sessions, c.lobby_players AS players
      FROM title_count AS c FINAL WHERE c.ts >= '${IMPORTS_BEFORE}' ORDER BY c.ts, c.title_id`),
    'ms'
  )
  const stepOf = new Map<string, number>()
  for (const [ms, rows] of network) {
    const value = (metric: string) => Number(rows.find((row) => row.metric === metric)?.value)
    const step = value('registered') - REGISTERED_FROM
    stepOf.set(ms, step)
    found.push(...misdated(facts, `network_count at ${ms}`, step, Number(ms)))
    const shown = shownAt(facts.seed, step)
    const sessions = shown.titles.reduce((sum, { lobbies }) => sum + (lobbies?.sessions ?? 0), 0)
    const wanted = [shown.online, sessions]
    found.push(...equal(`network_count at ${ms}`, [value('online'), value('lobbies')], wanted))
  }
  for (const [ms, rows] of titles) {
    // If two processes read two pages in one second, the last publication wins for each title.
    const steps = new Set(rows.map((row) => stepOfOnline(Number(row.online))))
    if (!canBePartial) found.push(...equal(`steps at ${ms}`, [...steps], [stepOf.get(ms) ?? [...steps][0]]))
    const shown = new Map([...steps].map((step) => [step, shownAt(facts.seed, step).titles]))
    for (const step of steps) found.push(...misdated(facts, `title_count at ${ms}`, step, Number(ms)))
    for (const { titleId, online, sessions, players } of rows) {
      const title = shown.get(stepOfOnline(Number(online)))?.find((each) => each.titleId === titleId)
      const wanted = [title?.online, title?.lobbies?.sessions, title?.lobbies?.players]
      found.push(...equal(`title_count of ${titleId} at ${ms}`, [online, sessions, players], wanted))
    }
    const ids = rows.map((row) => row.titleId)
    if (network.has(ms) || !canBePartial) found.push(...equal(`titles at ${ms}`, ids, titleIds))
  }
  for (const ms of network.keys())
    if (!titles.has(ms)) found.push(`network_count at ${ms} has no title_count of the same instant`)
  const instants = [...network.keys()].map(Number)
  for (const { fromMs, toMs } of facts.scraped) {
    // Samples are of whole seconds.
    if (!instants.some((ms) => ms > fromMs - 1000 && ms <= toMs))
      found.push(`the scrape from ${fromMs} to ${toMs} succeeded but has no row`)
  }
  return found
}

/** Requires every row of an acknowledged file, and no other row than its own of any other file. */
async function importDifferences({ facts, tables }: Needs): Promise<string[]> {
  const found: string[] = []
  const rows = await tables.control.rows(`
    SELECT c.title_id AS titleId, groupArray(toUnixTimestamp(c.ts)) AS times, groupArray(c.online) AS online
    FROM (SELECT * FROM title_count FINAL WHERE ts < '${IMPORTS_BEFORE}' ORDER BY title_id, ts) AS c GROUP BY c.title_id`)
  const byTitle = new Map(rows.map((row) => [String(row.titleId), row]))
  const files = Math.max(-1, ...facts.imported) + 1
  for (let file = 0; file <= files; file += 1) {
    const { titleId, online } = importedFile(facts.seed, file)
    const row = byTitle.get(titleId)
    byTitle.delete(titleId)
    const times = (row?.times ?? []) as number[]
    const wanted = times.map((time) => online[(time - IMPORT_FROM_S) / 3600])
    const rows = (row?.online ?? []) as number[]
    const isImported = facts.imported.has(file)
    found.push(...equal(`imported file ${file}`, ...firstDifference(rows, isImported ? online : wanted)))
  }
  for (const titleId of byTitle.keys()) found.push(`title_count has ${titleId}, which no file holds`)
  return found
}

async function matchDifferences({ facts, tables }: Needs): Promise<string[]> {
  const rows = await tables.control.rows(`SELECT l.title_id AS titleId, toUnixTimestamp64Milli(l.ts) AS ms,
      l.hosts AS hosts, l.players AS players, l.max_players AS most FROM match_list AS l FINAL ORDER BY l.title_id, l.ts`)
  return rows.flatMap((row) => {
    const [hosts, players, most] = [row.hosts as string[], row.players as number[], row.most as number[]]
    const shown = hosts.map((host, at) => JSON.stringify([host, players[at], most[at]])).sort()
    const step = Math.max(...most) - LOBBY_MOST_FROM
    const wanted = lobbiesAt(facts.seed, titleIds.indexOf(String(row.titleId)), step)
      .map((lobby) => JSON.stringify([lobby.host, lobby.players, lobby.most]))
      .sort()
    const name = `match_list of ${row.titleId} at ${row.ms}`
    return [...misdated(facts, name, step, Number(row.ms)), ...equal(name, shown, wanted)]
  })
}

/** Compares each sighting with its page; the last published one of a second wins. */
async function presenceDifferences({ facts, tables, canBePartial }: Needs): Promise<string[]> {
  const events = await tables.control.rows(`SELECT e.user_key AS userKey, e.is_online AS isOnline, e.game AS game,
      e.gamertag AS gamertag, toUnixTimestamp64Milli(e.observed_at) AS ms
    FROM event_presence AS e FINAL ORDER BY e.epoch, e.offset`)
  const found: string[] = []
  for (const [gamertag, seen] of grouped(events, 'gamertag')) {
    const step = stepOfTag(gamertag)
    const shown = new Map(playersAt(facts.seed, step).map((each) => [nameKey(each.username), each.game ?? '']))
    const false_ = seen.filter(
      ({ userKey, isOnline, game }) => shown.get(String(userKey)) !== game || isOnline !== (game !== '')
    )
    found.push(...equal(`sightings of step ${step}`, false_, []))
    // Users that are already offline are not published again.
    const online = [...shown.keys()].filter((userKey) => shown.get(userKey) !== '')
    for (const [ms, rows] of grouped(seen, 'ms')) {
      found.push(...misdated(facts, `sightings at ${ms}`, step, Number(ms)))
      const missing = online.filter((userKey) => !rows.some((row) => row.userKey === userKey))
      if (!canBePartial) found.push(...equal(`missing in step ${step} at ${ms}`, missing, []))
    }
  }
  return found
}

/** Returns a difference if a page was stored before it was shown, or long after. */
function misdated(facts: Facts, what: string, step: number, ms: number): string[] {
  const [from, next] = [facts.shownFrom(step), facts.shownFrom(step + 1)]
  const second = ms / 1000
  if (from !== undefined && second >= from && (next === undefined || second <= next + READ_SECONDS_MAX)) return []
  return [`${what} shows step ${step}, which was shown from second ${from} to ${next}`]
}

type State = { readonly isGone: boolean; readonly rating: string; readonly ord: bigint; readonly step: number }
type Shown = readonly UpstreamEntry[]

/** Compares each board with its page at each visit. */
async function boardDifferences(needs: Needs): Promise<string[]> {
  const found: string[] = []
  for (const board of boardsOfAll) found.push(...(await differencesOfBoard(needs, board)))
  return found
}

async function differencesOfBoard(
  { facts, tables }: Needs,
  { titleId, leaderboardId }: (typeof boardsOfAll)[number]
): Promise<string[]> {
  const found: string[] = []
  const where = `WHERE x.title_id = '${titleId}' AND x.leaderboard_id = ${leaderboardId}`
  const name = `board ${leaderboardId} of ${titleId}`
  const rows = await tables.control.rows(`SELECT toUnixTimestamp64Milli(x.ts) AS ms, x.player AS player,
      x.is_gone AS isGone, x.rating AS rating, toString(x.ord) AS ord, x.step AS step
    FROM leaderboard_history AS x FINAL ${where} ORDER BY x.ts, x.epoch, x.offset`)
  const states = new Map<string, State>()
  for (const [ms, group] of grouped(rows, 'ms')) {
    for (const row of group) {
      const { isGone, rating, ord, step } = row
      states.set(String(row.player), {
        isGone: isGone === true,
        rating: String(rating),
        ord: BigInt(String(ord ?? 0)),
        step: Number(step)
      })
    }
    const shown = shownBy(states)
    const version = versionOfScore(leaderboardId, shown[0]?.score ?? '')
    const page = boardAt(facts.seed, titleId, leaderboardId, version).entries
    found.push(...equal(`${name} at ${ms}`, textOf(shown), textOf(page)))
  }
  return found
}

/** Returns the entries that were not removed, in order; `step` is the distance in ranks from the entry above. */
function shownBy(states: ReadonlyMap<string, State>): UpstreamEntry[] {
  let rank = 0
  return [...states]
    .filter(([, { isGone }]) => !isGone)
    .sort(([, a], [, b]) => (a.ord < b.ord ? -1 : 1))
    .map(([name, { rating, step }]) => {
      rank += step
      return { rank, name, score: rating }
    })
}

function textOf(entries: Shown): string[] {
  return entries.map(({ rank, name, score }) => `${String(rank).padStart(3)} ${name} ${score}`).sort()
}

/** Returns the first differing elements of two lists, each with its index and the length of its list. */
function firstDifference(found: readonly unknown[], wanted: readonly unknown[]): [unknown, unknown] {
  const length = Math.max(found.length, wanted.length)
  for (let at = 0; at < length; at += 1) {
    if (JSON.stringify(found[at]) === JSON.stringify(wanted[at])) continue
    return [
      [at, found.length, found[at] ?? null],
      [at, wanted.length, wanted[at] ?? null]
    ]
  }
  return [[], []]
}

type Written = { readonly key: string; readonly text: string | null; readonly revision: string }

/**
 * Compares profiles and ratings: PostgreSQL must have the last acknowledged value or one sent after it, and ClickHouse the same.
 */
export async function differencesFromWritten(
  { facts, tables }: Omit<Needs, 'canBePartial'>,
  writes: Postgres
): Promise<string[]> {
  const found: string[] = []
  const [outbox] = await writes.query<{ rows: number }>('SELECT count(*)::int AS rows FROM outbox')
  if (outbox?.rows !== 0) found.push(`${outbox?.rows} rows are left in the outbox`)
  const possible = new Map([...facts.possible].map(([key, texts]) => [keyOf(key), texts]))
  const acknowledged = new Set([...facts.acknowledged].map(keyOf))
  for (const { what, inWrites, inTables } of WRITTEN) {
    const kept = await writes.query<Written>(inWrites)
    const shown = await tables.control.rows(inTables)
    const inOrder = (rows: readonly Row[]) =>
      rows.map((row) => JSON.stringify([row.key, row.text, row.revision])).sort()
    found.push(...equal(`${what} in ClickHouse`, ...firstDifference(inOrder(shown), inOrder(kept))))
    for (const { key, text } of kept) {
      const texts = possible.get(`${what} ${key}`) ?? []
      // A rating creates a default profile of the rater before any edit.
      const isUnedited = what === 'profile' && text === '' && !acknowledged.has(`${what} ${key}`)
      if (!isUnedited && !texts.includes(text ?? ''))
        found.push(`${what} of ${key}: found ${text}, expected one of ${texts.slice(-TEXTS_MAX).join(', ')}`)
      acknowledged.delete(`${what} ${key}`)
    }
  }
  for (const key of acknowledged) found.push(`${key} was acknowledged but is missing`)
  return found
}

const WRITTEN = [
  {
    what: 'rating',
    inWrites: `SELECT r.user_key || ' ' || r.rater_key AS key, r.comment AS text, r.revision::text AS revision
      FROM rating AS r`,
    inTables: `SELECT concat(r.user_key, ' ', r.rater_key) AS key, r.comment AS text, toString(r.revision) AS revision
      FROM rating AS r FINAL`
  },
  {
    what: 'profile',
    inWrites: 'SELECT p.user_key AS key, p.bio AS text, p.revision::text AS revision FROM profile AS p',
    inTables: 'SELECT p.user_key AS key, p.bio AS text, toString(p.revision) AS revision FROM profile AS p FINAL'
  }
] as const

/** Returns `<what> <names>` with the names as keys. */
function keyOf(key: string): string {
  const [what = '', ...names] = key.split(' ')
  return [what, ...names.map(nameKey)].join(' ')
}
