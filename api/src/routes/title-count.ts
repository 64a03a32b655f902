import { OnlineUsers, shownInstant, TitleOnlineHistory, TopGames } from '@gamenet/schemas'
import { z } from 'zod'
import type { Endpoint } from '../answers/endpoint.js'
import { listOf, valuesOf } from '../answers/table.js'
import { compareNames } from '../queries/catalog.js'
import { newestHosts } from '../queries/match-list.js'
import { rowsOf } from '../queries/query.js'
import { cutAtDays, type Window } from '../queries/series.js'
import { liveTitleCounts, titleActivity, titleSeriesQueries } from '../queries/title-count.js'
import { integer } from '../request/parameters.js'
import { endOfMinute, type WindowInput, window } from '../request/window.js'
import { knownTitle, titleParameter } from './known-game.js'
import {
  readsOf,
  type SeriesRequest,
  seriesAnswer,
  seriesDescription,
  seriesParameters,
  seriesReads,
  seriesRequest,
  windowParameters
} from './series.js'

/** Largest age of a list of matches relative to the newest count: matches are fetched separately, page by page. */
const LIST_AGE_MS_MAX = 10 * 60_000

/** `GET /api/online-users`: current players of all titles. */
export const onlineUsers: Endpoint<Record<string, never>, { toMs: number }> = {
  operationId: 'getOnlineUsers',
  path: '/api/online-users',
  tags: ['Titles'],
  summary: 'Players online by game, now',
  description:
    'Every game of the newest scrape (or, if nothing was ever scraped, of the newest imported instant), including ' +
    'zero counts, keyed by its name; of several games with one name all but one are keyed `Name [titleid]`. A game ' +
    'without a description has its id as its name. `lobbyHostNames` are the hosts of its newest list of matches, in ' +
    'list order; empty when that is more than 10 minutes older than the count.',
  input: z.object({}),
  resolve: (_input, { nowMs }) => ({ toMs: endOfMinute(nowMs) }),
  reads: () => [{ projection: 'title-latest' }, { projection: 'match-latest' }, { projection: 'title' }],
  answer: async ({ toMs }, { tables, signal, catalog }) => {
    const [counts, lists, titles] = await Promise.all([
      rowsOf(tables, liveTitleCounts, { to: toMs }, { signal }),
      rowsOf(tables, newestHosts, { nowEnd: toMs }, { signal }),
      catalog()
    ])
    const listById = new Map(lists.map((list) => [list.titleId, list]))
    const shown = counts
      .map((count) => ({ count, title: titles.named(count.titleId) }))
      .sort((a, b) => compareNames(a.title.shownName, b.title.shownName))
    // Without a prototype: a game may be called `__proto__`.
    const body: Record<string, unknown> = Object.create(null)
    for (const { count, title } of shown) {
      const sessions = count.sessions ?? 0
      body[title.shownName] = {
        name: title.name,
        online: count.online,
        titleId: count.titleId,
        image: title.image,
        publisher: title.publisher,
        activeLobbies: sessions,
        sessionCount: sessions,
        activeLobbyPlayers: count.lobbyPlayers ?? 0,
        hasActiveSession: sessions > 0,
        lobbyHostNames: presentHosts(listById.get(count.titleId), count.countedAtMs)
      }
    }
    return { body }
  },
  table: valuesOf(OnlineUsers),
  response: OnlineUsers
}

/** `GET /api/title/:titleId/online-users/history`: players of one title over time. */
export const titleOnlineHistory: Endpoint<
  WindowInput & { titleId: string; resolution?: 'raw' | number | undefined },
  SeriesRequest & { titleId: string }
> = {
  operationId: 'getTitleOnlineHistory',
  path: '/api/title/:titleId/online-users/history',
  tags: ['Titles'],
  summary: 'Players of one title over time',
  description: `The last \`hours\` hours up to now, or any window by \`from\` and \`to\`. ${seriesDescription}`,
  input: z.object({
    titleId: titleParameter,
    hours: integer({ min: 1, max: 8760 }).optional().describe('Length of the window that ends now; default: 48.'),
    ...seriesParameters
  }),
  resolve: async ({ titleId, ...input }, context) => {
    const series = seriesRequest(input, { hours: 48 }, context.nowMs)
    return { titleId: (await knownTitle(titleId, context)).titleId, ...series }
  },
  reads: (series) => seriesReads('title-count', series, series.titleId),
  ...seriesAnswer({
    queries: titleSeriesQueries,
    count: 'online_count',
    response: TitleOnlineHistory,
    keyOf: ({ titleId }) => ({ titleId })
  }),
  refuses: ['title_unknown', 'window_invalid', 'answer_too_large']
}

/** `GET /api/network-stats/top-games`: the games of a window by their peaks. */
export const topGames: Endpoint<WindowInput & { limit?: number | undefined }, Window & { limit: number | null }> = {
  operationId: 'getTopGames',
  path: '/api/network-stats/top-games',
  tags: ['Network'],
  summary: 'Games by their peak of players',
  description:
    'Every game with a sample in the last `days` days, or in any window of history by `from` and `to`: highest peak ' +
    'first, equal ones by name. `average` is the mean of the `samples`, `activeHours` counts UTC hours with a sample ' +
    'above 0.',
  input: z.object({
    days: integer({ min: 1, max: 365 }).optional().describe('Length of the window that ends now; default: 30.'),
    ...windowParameters,
    limit: integer({ min: 1, max: 500 }).optional().describe('Maximum number of games; default: all.')
  }),
  resolve: ({ limit, ...input }, { nowMs }) => {
    const { fromMs, toMs } = window(input, { days: 30 }, nowMs)
    return { fromMs, toMs, limit: limit ?? null }
  },
  reads: ({ fromMs, toMs }) => [...readsOf('title-count', cutAtDays({ fromMs, toMs })), { projection: 'title' }],
  answer: async ({ fromMs, toMs, limit }, { tables, signal, catalog }) => {
    const [titles, names] = await Promise.all([
      rowsOf(tables, titleActivity, cutAtDays({ fromMs, toMs }), { signal }),
      catalog()
    ])
    const games = titles
      .map(({ titleId, peak, peakAtMs, average, counted, activeHours }) => ({
        titleId,
        name: names.named(titleId).name,
        peak,
        peakAt: shownInstant(peakAtMs),
        average,
        samples: counted,
        activeHours
      }))
      .sort((a, b) => b.peak - a.peak || compareNames(a.name, b.name) || compareNames(a.titleId, b.titleId))
    return { body: limit === null ? games : games.slice(0, limit) }
  },
  table: listOf(TopGames),
  response: TopGames,
  refuses: ['window_invalid']
}

function presentHosts(list: { listedAtMs: number; hosts: readonly string[] } | undefined, countedAtMs: number) {
  return list !== undefined && list.listedAtMs >= countedAtMs - LIST_AGE_MS_MAX ? list.hosts : []
}
