import { Matches, MatchHistory, MatchStats, Refusal, shownInstant } from '@gamenet/schemas'
import { z } from 'zod'
import type { AnswerContext, Dependency, Endpoint, ResolveContext } from '../answers/endpoint.js'
import { listIn, listOf } from '../answers/table.js'
import {
  type HourOfDay,
  hoursOfDay,
  MATCHES_MAX,
  matchesInWindow,
  matchTotals,
  newestList,
  topHosts
} from '../queries/match-list.js'
import { rowsOf } from '../queries/query.js'
import { cutAtHours, type Window } from '../queries/series.js'
import { integer } from '../request/parameters.js'
import { endOfMinute, type WindowInput, window } from '../request/window.js'
import { knownTitle, titleParameter } from './known-game.js'
import { windowParameters } from './series.js'

const TAGS = ['Matches']
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
/** Hours with a list that a busiest hour needs: an evening says nothing about the hours of the day. */
const BUSIEST_OF_HOURS_MIN = 24
/** When the former paths became deprecated. */
const DEPRECATED_SINCE = new Date('2026-01-01T00:00:00Z')

type TitleInput = { titleId: string }
type HistoryInput = WindowInput & TitleInput
type OfTitle = { titleId: string; gameName: string }
/** The end of "now", milliseconds since 1970. */
type Now = { nowEndMs: number }
/** Matches in lists since then can be open, milliseconds since 1970. */
type Open = Now & { openSinceMs: number }
type HistoryRequest = Window & TitleInput & Open
type StatsRequest = Window & OfTitle & Open

const hoursParameter = integer({ min: 1, max: 720 })

const listOfLobbies: Omit<Endpoint<TitleInput, OfTitle & Now>, 'operationId' | 'path' | 'summary'> = {
  tags: TAGS,
  description:
    'The lobbies of the title’s newest list, in the order of the list; `timestamp` is its instant. A title without a ' +
    'known list has none.',
  input: z.object({ titleId: titleParameter }),
  resolve: async ({ titleId }, context) => ({
    ...(await ofKnownTitle(titleId, context)),
    nowEndMs: endOfMinute(context.nowMs)
  }),
  reads: ({ titleId }) => [{ projection: 'match-latest', key: titleId }],
  answer: async ({ titleId, gameName, nowEndMs }, { tables, signal }) => {
    const [list] = await rowsOf(tables, newestList, { titleId, nowEnd: nowEndMs }, { signal })
    const { hosts = [], players = [], maxPlayers = [], timestamp } = list ?? {}
    const matches = hosts.map((hostName, n) => ({
      hostName,
      currentPlayers: players[n] ?? 0,
      maxPlayers: maxPlayers[n] ?? 0,
      timestamp
    }))
    return { body: { titleId, gameName, matches } }
  },
  table: listIn(Matches, 'matches'),
  response: Matches,
  refuses: ['title_unknown']
}

/** `GET /api/title/:titleId/matches`: the current lobbies of a title. */
export const matches: Endpoint<TitleInput, OfTitle & Now> = {
  ...listOfLobbies,
  operationId: 'getMatches',
  path: '/api/title/:titleId/matches',
  summary: 'Current matches of a title'
}

/** `GET /api/game/:titleId/matches`: the same under another path. */
export const gameMatches: Endpoint<TitleInput, OfTitle & Now> = {
  ...listOfLobbies,
  operationId: 'getGameMatches',
  path: '/api/game/:titleId/matches',
  summary: 'Current matches of a title, by another path'
}

/** `GET /api/title/:titleId/lobbies`: the same under the deprecated path. */
export const lobbies: Endpoint<TitleInput, OfTitle & Now> = {
  ...listOfLobbies,
  operationId: 'getLobbies',
  path: '/api/title/:titleId/lobbies',
  summary: 'Current matches of a title, by its old path',
  deprecated: {
    since: DEPRECATED_SINCE,
    successor: ({ titleId }) => `/api/title/${encodeURIComponent(titleId)}/matches`
  }
}

const historyOfMatches: Omit<Endpoint<HistoryInput, HistoryRequest>, 'operationId' | 'path' | 'summary' | 'input'> = {
  tags: TAGS,
  description:
    'Matches that overlap the window, last begun first, equal ones by host. A match lasts while the n-th lobby of ' +
    'its host is in successive lists of the title; a failed scrape neither ends nor extends it. `firstSeen` and ' +
    '`lastSeen` are the instants of the first and the last list with it. `isOpen`: it is in the newest list of the ' +
    'title, and the list is at most 10 minutes old, or three periods of the scrape if longer. More than 100,000 ' +
    'matches are refused.',
  resolve: async ({ titleId, ...input }, context) => {
    const { fromMs, toMs } = window(input, { hours: 24 }, context.nowMs)
    return { titleId: (await knownTitle(titleId, context)).titleId, fromMs, toMs, ...openSince(context) }
  },
  reads: ({ titleId }) => readsOfMatches(titleId),
  answer: async ({ titleId, fromMs, toMs, openSinceMs, nowEndMs }, { tables, signal }) => {
    const params = { titleId, from: fromMs, to: toMs, openSince: openSinceMs, nowEnd: nowEndMs }
    const rows = await rowsOf(tables, matchesInWindow, params, { signal })
    if (rows.length > MATCHES_MAX) throw tooManyMatches({ fromMs, toMs })
    const body = rows.map(({ firstSeenMs, lastSeenMs, hostName, peakPlayers, maxPlayers, isOpen }) => ({
      hostName,
      firstSeen: shownInstant(firstSeenMs),
      lastSeen: shownInstant(lastSeenMs),
      durationMinutes: Math.round((lastSeenMs - firstSeenMs) / (MINUTE_MS / 10)) / 10,
      peakPlayers,
      maxPlayers,
      isOpen
    }))
    return { body }
  },
  table: listOf(MatchHistory),
  response: MatchHistory,
  refuses: ['title_unknown', 'window_invalid', 'answer_too_large']
}

/** `GET /api/title/:titleId/matches/history`: the matches of a title over time. */
export const matchHistory: Endpoint<HistoryInput, HistoryRequest> = {
  ...historyOfMatches,
  operationId: 'getMatchHistory',
  path: '/api/title/:titleId/matches/history',
  summary: 'Matches of a title over time',
  input: z.object({
    titleId: titleParameter,
    hours: hoursParameter.optional().describe('Length of the window that ends now; default: 24.'),
    ...windowParameters
  })
}

/** `GET /api/title/:titleId/matches/last/:hours`: the same under the deprecated path. */
export const lastMatches: Endpoint<TitleInput & { hours: number }, HistoryRequest> = {
  ...historyOfMatches,
  operationId: 'getLastMatches',
  path: '/api/title/:titleId/matches/last/:hours',
  summary: 'Matches of a title over the last hours, by their old path',
  input: z.object({ titleId: titleParameter, hours: hoursParameter.describe('Length of the window that ends now.') }),
  deprecated: {
    since: DEPRECATED_SINCE,
    successor: ({ titleId, hours }) => `/api/title/${encodeURIComponent(titleId)}/matches/history?hours=${hours}`
  }
}

const statsOfMatches: Omit<Endpoint<TitleInput, StatsRequest>, 'operationId' | 'path' | 'summary'> = {
  tags: TAGS,
  description:
    'What the newest list shows, if it is at most 10 minutes old (three periods of the scrape if longer), and ' +
    'statistics of the last 30 days. `matches24h`, `matches7d` and `matches30d` count the matches that overlap the ' +
    'last day, 7 and 30 days; `averageDurationMinutes` is their mean time from first to last sight over 30 days, ' +
    '`averagePlayers` the mean players of a lobby over all lists of 30 days. `peakConcurrentMatches` is the most ' +
    'lobbies of one list, `peakConcurrentMatchesAt` the first instant of that; `busiestHourUtc` the hour of the day ' +
    'with the highest mean of players a list, the earliest of equal ones; null unless 24 hours of the 30 days have a ' +
    'list (`hoursWithLists`). Without data: 0, null and no hosts.',
  input: z.object({ titleId: titleParameter }),
  resolve: async ({ titleId }, context) => {
    const { fromMs, toMs } = window({}, { days: 30 }, context.nowMs)
    return { ...(await ofKnownTitle(titleId, context)), fromMs, toMs, ...openSince(context) }
  },
  reads: ({ titleId, fromMs, toMs }) => [
    ...readsOfMatches(titleId),
    { projection: 'match-list', key: titleId, fromMs, toMs },
    { projection: 'match-list-hour', key: titleId, fromMs, toMs }
  ],
  answer: async (request, context) => ({ body: await statsBody(request, context) }),
  response: MatchStats,
  refuses: ['title_unknown']
}

/** `GET /api/title/:titleId/matches/stats`: statistics of the matches of a title. */
export const matchStats: Endpoint<TitleInput, StatsRequest> = {
  ...statsOfMatches,
  operationId: 'getMatchStats',
  path: '/api/title/:titleId/matches/stats',
  summary: 'Statistics of a title’s matches'
}

/** `GET /api/title/:titleId/lobby-stats`: the same under the deprecated path. */
export const lobbyStats: Endpoint<TitleInput, StatsRequest> = {
  ...statsOfMatches,
  operationId: 'getLobbyStats',
  path: '/api/title/:titleId/lobby-stats',
  summary: 'Statistics of a title’s matches, by their old path',
  deprecated: {
    since: DEPRECATED_SINCE,
    successor: ({ titleId }) => `/api/title/${encodeURIComponent(titleId)}/matches/stats`
  }
}

/** Floored to the minute, so that all answers of a minute are the same function of the data. */
function openSince({ nowMs, openListAgeMs }: ResolveContext): Open {
  const nowEndMs = endOfMinute(nowMs)
  return { nowEndMs, openSinceMs: Math.max(0, nowEndMs - MINUTE_MS - openListAgeMs) }
}

async function ofKnownTitle(idOrName: string, context: ResolveContext): Promise<OfTitle> {
  const { titleId, shownName } = await knownTitle(idOrName, context)
  return { titleId, gameName: shownName }
}

/**
 * Returns the dependencies of matches. Whether a match is open follows from the newest list and the clock, and any
 * later list of the title can lengthen a match of any window.
 */
function readsOfMatches(titleId: string): Dependency[] {
  return [
    { projection: 'match-session', key: titleId },
    { projection: 'match-latest', key: titleId }
  ]
}

function tooManyMatches({ fromMs, toMs }: Window): Refusal {
  return new Refusal('answer_too_large', [
    `the window from ${shownInstant(fromMs)} to ${shownInstant(toMs)} holds more than ${MATCHES_MAX} matches; ` +
      `request shorter windows with from and to`
  ])
}

async function statsBody(
  { titleId, gameName, fromMs, toMs, openSinceMs, nowEndMs }: StatsRequest,
  { tables, signal }: AnswerContext
): Promise<unknown> {
  const bounds = { titleId, from: fromMs, to: toMs }
  const parts = { fromDay: lastDays(1, toMs), fromWeek: lastDays(7, toMs) }
  const [[list], [totals], hosts, hours] = await Promise.all([
    rowsOf(tables, newestList, { titleId, nowEnd: nowEndMs }, { signal }),
    rowsOf(tables, matchTotals, { ...bounds, ...parts }, { signal }),
    rowsOf(tables, topHosts, bounds, { signal }),
    rowsOf(tables, hoursOfDay, { titleId, ...cutAtHours({ fromMs, toMs }) }, { signal })
  ])
  const hoursWithLists = sumOf(hours.map((hour) => hour.hours))
  const current = list !== undefined && list.listedAtMs >= openSinceMs ? list : undefined
  return {
    titleId,
    gameName,
    currentMatches: current?.hosts.length ?? 0,
    currentPlayers: sumOf(current?.players ?? []),
    matches24h: totals?.matchesOfDay ?? 0,
    matches7d: totals?.matchesOfWeek ?? 0,
    matches30d: totals?.matches ?? 0,
    ...peakOf(hours),
    averageDurationMinutes: totals?.averageDurationMinutes ?? 0,
    averagePlayers: averagePlayersOf(hours),
    busiestHourUtc: hoursWithLists < BUSIEST_OF_HOURS_MIN ? null : busiestOf(hours),
    hoursWithLists,
    topHosts: hosts
  }
}

/** Returns the start of the last days before a window's end; the window additionally contains the current minute. */
const lastDays = (days: number, toMs: number): number => Math.max(0, toMs - MINUTE_MS - days * DAY_MS)

function peakOf(hours: readonly HourOfDay[]) {
  const [most] = hours.toSorted((a, b) => b.mostLobbies - a.mostLobbies || a.mostLobbiesAtMs - b.mostLobbiesAtMs)
  return {
    peakConcurrentMatches: most?.mostLobbies ?? 0,
    peakConcurrentMatchesAt: most === undefined ? null : shownInstant(most.mostLobbiesAtMs)
  }
}

function averagePlayersOf(hours: readonly HourOfDay[]): number {
  const lobbies = sumOf(hours.map((hour) => hour.lobbies))
  return lobbies === 0 ? 0 : Math.round((sumOf(hours.map((hour) => hour.players)) * 10) / lobbies) / 10
}

function busiestOf(hours: readonly HourOfDay[]): number | null {
  const mean = ({ players, lists }: HourOfDay): number => players / lists
  const [busiest] = hours.toSorted((a, b) => mean(b) - mean(a) || a.hourUtc - b.hourUtc)
  return busiest?.hourUtc ?? null
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0)
