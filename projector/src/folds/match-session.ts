import type { Value } from '../rows/columns.js'
import type { ColumnTypes } from '../rows/row-writer.js'
import type { AnswerRow, FoldFunction } from './fold.js'

/*
 * lobby    the n-th lobby of one host name in a list
 * run      sightings of one lobby in successive lists of one stretch
 * stretch  successive lists of a title, oldest first, with the runs in them
 * match    a complete run: the list before its first sighting and the list after its last one lack the lobby
 */

/** Sightings of one lobby in successive lists. */
export type Match = {
  readonly host: string
  /** 1 for the first lobby of its host in a list. */
  readonly nth: number
  readonly firstMs: number
  readonly lastMs: number
  readonly peakPlayers: number
  /** The maximum number of places ever shown; 0 if unknown. */
  readonly maxPlayers: number
  readonly playersSum: number
  readonly sightings: number
}

/** Successive lists of one title: their instants, oldest first, and their runs. */
export type Stretch = { readonly instants: readonly number[]; readonly runs: readonly Match[] }

/** A stored row of `match_session`. */
export type StoredMatch = Match & { readonly isVoid: boolean; readonly version: bigint }

export const MATCH_TYPES: ColumnTypes = {
  title_id: 'LowCardinality(String)',
  first_seen: `DateTime64(3, 'UTC')`,
  host: 'String',
  nth: 'UInt32',
  is_void: 'Bool',
  last_seen: `DateTime64(3, 'UTC')`,
  peak_players: 'UInt32',
  max_players: 'UInt32',
  players_sum: 'UInt64',
  sightings: 'UInt32',
  version: 'UInt64'
}

/**
 * Joins the runs of successive stretches to matches.
 * @param open the matches in the list directly before the first stretch
 */
export function joinRuns(stretches: readonly Stretch[], open: readonly Match[]): Match[] {
  const ended: Match[] = []
  let going = new Map(open.map((match) => [lobbyKey(match), match]))
  for (const { instants, runs } of stretches) {
    const firstMs = instants[0]
    const lastMs = instants.at(-1)
    const next = new Map<string, Match>()
    for (const run of runs) {
      const key = lobbyKey(run)
      const before = run.firstMs === firstMs ? going.get(key) : undefined
      if (before !== undefined) going.delete(key)
      const match = before === undefined ? run : joined(before, run)
      if (run.lastMs === lastMs) next.set(key, match)
      else ended.push(match)
    }
    ended.push(...going.values())
    going = next
  }
  return [...ended, ...going.values()]
}

/** The known facts about a title's matches, and its lists from some cut. */
export type TitleFacts = {
  /** The newest list before everything touched, milliseconds since 1970; -1 if there is none. */
  readonly beforeMs: number
  /** True if the stretches begin directly after that list, and the stored matches of that list are correct. */
  readonly isContinued: boolean
  readonly stretches: readonly Stretch[]
  /** The newest position of the lists in the stretches. */
  readonly position: bigint
  /** Every stored row that the matches of the stretches could replace. */
  readonly stored: readonly StoredMatch[]
}

/**
 * Returns the rows of `match_session` to write. Matches that ended before the list at `beforeMs` are left unchanged:
 * nothing touched can have changed them, and the stretches may begin in the middle of them. A correct row is not
 * written again.
 */
export function changedMatches({ beforeMs, isContinued, stretches, position, stored }: TitleFacts): StoredMatch[] {
  const known = new Map(stored.map((match) => [matchKey(match), match]))
  const open = isContinued ? stored.filter((match) => !match.isVoid && match.lastMs === beforeMs) : []
  const matches = joinRuns(stretches, open).filter(({ lastMs }) => lastMs >= beforeMs)
  let version = position
  for (const match of stored) if (match.version > version) version = match.version
  const changed: StoredMatch[] = []
  for (const match of matches) {
    const before = known.get(matchKey(match))
    known.delete(matchKey(match))
    if (before === undefined || before.isVoid || !isSame(before, match))
      changed.push({ ...match, isVoid: false, version })
  }
  for (const match of known.values()) {
    if (!match.isVoid && match.lastMs >= beforeMs) changed.push({ ...match, isVoid: true, version })
  }
  return changed
}

/**
 * Returns whether the stored rows go further than the lists that were read before them: another process has continued
 * meanwhile, and these lists do not explain its matches.
 */
export function isOvertaken({ beforeMs, isContinued, stretches, stored }: TitleFacts): boolean {
  const knownMs = isContinued ? beforeMs : Math.max(beforeMs, stretches.at(-1)?.instants.at(-1) ?? beforeMs)
  return stored.some(({ isVoid, lastMs }) => !isVoid && lastMs > knownMs)
}

/** The fold of `match-session`: reads `lists` and then `stored`, see the projection. */
export const foldMatchSession: FoldFunction = ({ lists = [], stored = [] }, write) => {
  const storedByTitle = grouped(stored)
  for (const [titleId, rows] of grouped(lists)) {
    const facts = {
      beforeMs: Number(rows[0]?.before_ms),
      isContinued: Boolean(rows[0]?.is_continued),
      stretches: rows.map(stretchOf),
      position: rows.reduce((most, row) => larger(most, BigInt(String(row.newest))), 0n),
      stored: (storedByTitle.get(titleId) ?? []).map(storedOf)
    }
    if (isOvertaken(facts)) return 'again'
    for (const match of changedMatches(facts)) write('match_session', valuesOf(titleId, match))
  }
  return undefined
}

function joined(before: Match, run: Match): Match {
  return {
    host: run.host,
    nth: run.nth,
    firstMs: before.firstMs,
    lastMs: run.lastMs,
    peakPlayers: Math.max(before.peakPlayers, run.peakPlayers),
    maxPlayers: Math.max(before.maxPlayers, run.maxPlayers),
    playersSum: before.playersSum + run.playersSum,
    sightings: before.sightings + run.sightings
  }
}

const lobbyKey = ({ nth, host }: Match): string => `${nth} ${host}`

const matchKey = (match: Match): string => `${match.firstMs} ${lobbyKey(match)}`

function isSame(a: Match, b: Match): boolean {
  return (
    a.lastMs === b.lastMs &&
    a.peakPlayers === b.peakPlayers &&
    a.maxPlayers === b.maxPlayers &&
    a.playersSum === b.playersSum &&
    a.sightings === b.sightings
  )
}

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b)

function grouped(rows: Iterable<AnswerRow>): Map<string, AnswerRow[]> {
  const byTitle = new Map<string, AnswerRow[]>()
  for (const row of rows) {
    const titleId = String(row.title_id)
    const of = byTitle.get(titleId)
    if (of === undefined) byTitle.set(titleId, [row])
    else of.push(row)
  }
  return byTitle
}

type RunValues = readonly [number, number, number, number, number, number]

function stretchOf(row: AnswerRow): Stretch {
  const lobbies = row.lobbies as readonly (readonly [string, number, readonly RunValues[]])[]
  return {
    instants: row.instants as readonly number[],
    runs: lobbies.flatMap(([host, nth, runs]) =>
      runs.map(([firstMs, lastMs, peakPlayers, maxPlayers, playersSum, sightings]) => ({
        host,
        nth,
        firstMs,
        lastMs,
        peakPlayers,
        maxPlayers,
        playersSum,
        sightings
      }))
    )
  }
}

function storedOf(row: AnswerRow): StoredMatch {
  return {
    host: String(row.host),
    nth: Number(row.nth),
    firstMs: Number(row.first_ms),
    lastMs: Number(row.last_ms),
    peakPlayers: Number(row.peak_players),
    maxPlayers: Number(row.max_players),
    playersSum: Number(row.players_sum),
    sightings: Number(row.sightings),
    isVoid: Boolean(row.is_void),
    version: BigInt(String(row.version))
  }
}

function valuesOf(titleId: string, match: StoredMatch): Value[] {
  const { firstMs, host, nth, isVoid, lastMs, peakPlayers, maxPlayers, playersSum, sightings, version } = match
  return [titleId, firstMs, host, nth, isVoid, lastMs, peakPlayers, maxPlayers, playersSum, sightings, version]
}
