import {
  instantOf,
  type LogExtents,
  type MatchesListed,
  matchListTopic,
  type ReadTables,
  titleCountTopic,
  titleStatusTopic
} from '@gamenet/schemas'
import { headsIfKnown, waitForTable } from '../caught-up.js'
import { namedGaps, type Source, STOPPING } from '../fetch/reading.js'
import type { PageParsing } from '../pages/page-parsing.js'
import { servedTables, type TableAccess } from '../ports/served-tables.js'
import { publication } from '../publish/publish.js'
import { matchListOf } from '../sources/match-list.js'
import { DEPARTED_TITLES } from '../sources/title-status.js'
import { createPageReader } from './page-reader.js'

/** Longest wait for the newest counts. The next run sees later ones. */
const CAUGHT_UP_MS = 5_000
/** Longest wait of a list for others: one append of many lists takes a seventh of the log's space. */
const APPEND_EVERY_MS = 5_000

/** A title without a count for this long has left the network, whatever its last state. */
const COUNTED_WITHIN_HOURS = 1

export type MatchesNeeds = TableAccess & { readonly parsing: PageParsing; readonly log: LogExtents }

type MatchesReader = ReturnType<typeof createPageReader<MatchesListed['matches']>>

/**
 * The game pages of all titles with sessions now, and of those whose newest list has a lobby, so that a closed lobby is
 * noticed. An unreadable page is a gap: it publishes no list. The lobbies of a title that left the network end without
 * its page.
 */
export function matchesSource(needs: MatchesNeeds): Source {
  let readers = new Map<string, MatchesReader>()
  return {
    name: 'matches',
    async read(reader, signal) {
      await waitForCounts(needs, signal)
      const { tables } = await servedTables(needs)
      const titleIds = await lively(tables, signal)
      // Pages are remembered only while their title is requested.
      readers = new Map(titleIds.map((titleId) => [titleId, readers.get(titleId) ?? matchesReader(needs, titleId)]))
      const gaps: string[] = []
      let lists = await endedLists(tables, signal)
      let publishedAtMs = performance.now()
      let done = 0
      for (const [titleId, readMatches] of readers) {
        const read = await readMatches(reader.fetcher, signal)
        if (read.ok) lists.push(matchListOf(titleId, read.page, read.observedAt))
        else if (!signal.aborted) gaps.push(`${titleId}: ${read.reason}`)
        if (signal.aborted) {
          if (lists.length === 0) return { ok: false, reason: STOPPING }
          return { ok: true, publications: [publication(matchListTopic, lists)], gaps: [...gaps, STOPPING] }
        }
        done += 1
        reader.onProgress?.(done, titleIds.length)
        if (performance.now() - publishedAtMs < APPEND_EVERY_MS) continue
        await reader.publish(publication(matchListTopic, lists))
        lists = []
        publishedAtMs = performance.now()
      }
      if (gaps.length > 0 && gaps.length === titleIds.length) return { ok: false, reason: namedGaps(gaps) }
      return { ok: true, publications: [publication(matchListTopic, lists)], gaps }
    }
  }
}

function matchesReader({ parsing }: { parsing: PageParsing }, titleId: string): MatchesReader {
  return createPageReader(`/games/${titleId}`, async (html, address) => {
    const parsed = await parsing.parse('game', html, address)
    if (!parsed.ok) return parsed
    const { matches } = parsed.page
    return matches.ok ? { ok: true, page: [...matches.value] } : matches
  })
}

/** Waits for the newest counts and statuses of titles. */
async function waitForCounts(needs: MatchesNeeds, signal: AbortSignal): Promise<void> {
  const options = { timeoutMs: CAUGHT_UP_MS, signal }
  for (const [topic, projection] of [
    [titleCountTopic, 'title-latest'],
    [titleStatusTopic, 'title-status']
  ] as const) {
    const heads = await headsIfKnown(needs.log, topic.name, options)
    if (heads !== undefined) await waitForTable(needs, { projection, heads }, options)
  }
}

/** Returns the titles with sessions in the newest counts or with a lobby in their newest list, by id. */
async function lively(tables: ReadTables, signal: AbortSignal): Promise<string[]> {
  const rows = await tables.rows(
    `SELECT c.title_id AS titleId
     FROM {title_latest: Identifier} AS c FINAL
     WHERE NOT c.imported
       AND c.ts >= (SELECT max(n.ts) FROM {title_latest: Identifier} AS n
       WHERE NOT n.imported) - INTERVAL {hours: UInt32} HOUR
       AND (c.sessions > 0 OR c.title_id IN (SELECT l.title_id FROM {match_latest: Identifier} AS l FINAL
       WHERE notEmpty(l.hosts)))
       AND c.title_id NOT IN (${DEPARTED_TITLES})
     ORDER BY c.title_id`,
    { hours: COUNTED_WITHIN_HOURS },
    { signal }
  )
  return rows.map((row) => String(row.titleId))
}

/** Returns empty lists for titles that left the network with lobbies, each dated after the list that it ends. */
async function endedLists(tables: ReadTables, signal: AbortSignal): Promise<MatchesListed[]> {
  const rows = await tables.rows(
    `SELECT l.title_id AS titleId, toUnixTimestamp64Milli(greatest(s.ts, l.ts + INTERVAL 1 MILLISECOND)) AS atMs
     FROM {match_latest: Identifier} AS l FINAL
     INNER JOIN (SELECT t.title_id, t.ts FROM {title_status: Identifier} AS t FINAL WHERE NOT t.on_network) AS s
       ON s.title_id = l.title_id
     WHERE notEmpty(l.hosts)
     ORDER BY l.title_id`,
    {},
    { signal }
  )
  return rows.map((row) => matchListOf(String(row.titleId), [], instantOf(Number(row.atMs))))
}
