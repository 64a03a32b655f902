import { type LeaderboardChanges, type RecentRecords, shownInstant } from '@gamenet/schemas'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Endpoint } from '../answers/endpoint.js'
import { questionOf, resolveUrl } from '../answers/resolved-url.js'
import { atOneInstant, type ReadNeeds } from '../http/one-instant.js'
import type { PipelineNeeds } from '../http/pipeline.js'
import { REVALIDATED } from '../reply/headers.js'
import { namedTag } from '../request/etag.js'
import { parseInput } from '../request/parameters.js'
import { readQuery } from '../request/query-string.js'
import { playerHistory } from '../routes/player.js'
import { recentlySetRecords } from '../routes/record-history.js'

const ENTRIES = 50

type FeedNeeds = ReadNeeds & Pick<PipelineNeeds, 'now' | 'openListAgeMs'> & { readonly publicUrl: string }
type Entry = { readonly id: string; readonly title: string; readonly at: string; readonly titleId: string }

/** Adds the Atom feeds (RFC 4287): new records, and the changes of a player's entries. */
export function addFeeds(app: FastifyInstance, needs: FeedNeeds): void {
  app.get('/api/records/recent.atom', (request, reply) =>
    answer(request, reply, needs, recentlySetRecords, 'New records', (records: RecentRecords) =>
      records.map(({ titleId, leaderboardId, playerName, rating, timeFormatted, ...record }) => ({
        // The rating: a player can beat an own record in the same instant, where instants are dates.
        id: ['record', titleId, leaderboardId, record.setAt, ...[playerName, rating].map(encodeURIComponent)].join('/'),
        title: `${playerName}: ${timeFormatted || rating} on ${named({ leaderboardId, ...record })}`,
        at: record.setAt,
        titleId
      }))
    )
  )
  app.get<{ Params: { playerName: string } }>('/api/player/:playerName/changes.atom', (request, reply) =>
    answer(
      request,
      reply,
      needs,
      playerHistory,
      `Changes of ${request.params.playerName}`,
      (changes: LeaderboardChanges) =>
        changes.map(({ id, titleId, playerName, changeType, newRating, newRank, changedAt, ...board }) => ({
          id: `change/${id}`,
          title: `${playerName} ${CHANGES[changeType]} ${named(board)}${
            newRating === null ? '' : `: ${newRating}, rank ${newRank ?? '?'}`
          }`,
          at: changedAt,
          titleId
        }))
    )
  )
}

type Board = { readonly leaderboardId: number; readonly leaderboardName: string; readonly gameName: string }

function named({ leaderboardId, leaderboardName, gameName }: Board): string {
  return `${leaderboardName.trim() || `leaderboard ${leaderboardId}`} (${gameName})`
}

const CHANGES = { new: 'came to', updated: 'changed on', removed: 'left' } as const

/** Answers with the feed of an endpoint; without a query if the client has it. */
async function answer<Input, Resolved, Body>(
  request: FastifyRequest,
  reply: FastifyReply,
  needs: FeedNeeds,
  endpoint: Endpoint<Input, Resolved>,
  title: string,
  entriesOf: (body: Body) => readonly Entry[]
): Promise<FastifyReply> {
  const given = { ...readQuery(request.raw.url ?? ''), ...(request.params as object), limit: String(ENTRIES) }
  const input = parseInput(endpoint.input, given)
  const { versions, catalog, now, openListAgeMs } = needs
  const context = { versions, catalog, nowMs: now(), openListAgeMs }
  const url = await resolveUrl(endpoint as Endpoint, input, questionOf(`${endpoint.path}.atom`, input), context)
  // A feed without entries is dated at the start of the day, so the day is part of the tag.
  const dayMs = Math.floor(context.nowMs / DAY_MS) * DAY_MS
  const tag = `${url.identity}-a${dayMs / DAY_MS}`
  void reply.headers({ 'Cache-Control': REVALIDATED, ETag: `"${tag}"` })
  if (namedTag(request.headers['if-none-match'], tag) !== undefined) return reply.code(304).send()
  const { body } = await atOneInstant(needs, AbortSignal.timeout(READ_MS_MAX), (context) =>
    endpoint.answer(url.resolved as Resolved, context)
  )
  // A target in absolute form begins with an authority, which is the client's word.
  const self = needs.publicUrl + (request.raw.url ?? '').replace(/^\w+:\/\/[^/]*/, '')
  const feed = atomOf(self, title, entriesOf(body as Body), { publicUrl: needs.publicUrl, emptyAtMs: dayMs })
  return reply.type('application/atom+xml; charset=utf-8').send(feed)
}

const DAY_MS = 86_400_000
const READ_MS_MAX = 10_000

function atomOf(
  self: string,
  title: string,
  entries: readonly Entry[],
  { publicUrl, emptyAtMs }: { readonly publicUrl: string; readonly emptyAtMs: number }
): string {
  const [newest] = entries
  const shown = entries.map(
    ({ id, title, at, titleId }) =>
      `<entry><id>${xml(`${publicUrl}/${id}`)}</id><title>${xml(title)}</title><updated>${at}</updated>` +
      `<link href="${xml(publicUrl)}/games/${titleId}"/></entry>`
  )
  return [
    '<?xml version="1.0" encoding="utf-8"?>',
    `<feed xmlns="http://www.w3.org/2005/Atom"><id>${xml(self)}</id><title>${xml(title)}</title>`,
    `<updated>${newest?.at ?? shownInstant(emptyAtMs)}</updated><author><name>Gamenet Stats</name></author>`,
    `<link rel="self" href="${xml(self)}"/>`,
    ...shown,
    '</feed>\n'
  ].join('\n')
}

/** Escapes a text. XML 1.0 cannot represent most control characters and unpaired surrogates. */
function xml(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cs}\ufffe\uffff]/gu, '\ufffd')
    .replace(/[<>&"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
