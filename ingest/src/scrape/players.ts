import { type LogExtents, nameKey, PRESENCE_PERIOD_SECONDS_MAX, presenceTopic } from '@gamenet/schemas'
import { headsIfKnown, waitForTable } from '../caught-up.js'
import type { Source } from '../fetch/reading.js'
import type { PageParsing } from '../pages/page-parsing.js'
import type { ShownPlayer } from '../pages/players-page.js'
import type { TableAccess } from '../ports/served-tables.js'
import { publication } from '../publish/publish.js'
import { presenceOf } from '../sources/presence.js'
import { createPageReader } from './page-reader.js'

/** Longest wait for the tables. Sightings that they lack are known from this process's own publications. */
const CAUGHT_UP_MS = 5_000

export type PlayersNeeds = TableAccess & {
  readonly parsing: PageParsing
  readonly log: LogExtents
  /** The interval between reads, as sightings report it. */
  readonly periodSeconds: number
}

/** The players page: all online users in every run, and users who went offline, once. */
export function playersSource(needs: PlayersNeeds): Source {
  const readPage = createPageReader('/players', (html, address) => needs.parsing.parse('players', html, address))
  const periodSeconds = Math.min(needs.periodSeconds, PRESENCE_PERIOD_SECONDS_MAX)
  /** Whether a user was online on the last published page, by user_key. */
  let lastShown = new Map<string, boolean>()
  return {
    name: 'players',
    async read({ fetcher }, signal) {
      const read = await readPage(fetcher, signal)
      if (!read.ok) return read
      const { players, unreadable } = read.page
      const { offline, isNewest } = await offlineInTables(needs, signal)
      const knownOffline = isNewest ? offline : withoutTables(lastShown, offline)
      const sightings = presenceOf(players, knownOffline, { observedAt: read.observedAt, periodSeconds })
      return {
        ok: true,
        publications: [publication(presenceTopic, sightings)],
        gaps: unreadable,
        onPublished: () => {
          lastShown = shownOn(players)
        }
      }
    }
  }
}

/**
 * Returns the users whose newest sighting in the tables is offline, and whether the tables have caught up with the log.
 */
async function offlineInTables(
  needs: PlayersNeeds,
  signal: AbortSignal
): Promise<{ offline: ReadonlySet<string>; isNewest: boolean }> {
  const options = { timeoutMs: CAUGHT_UP_MS, signal }
  const heads = await headsIfKnown(needs.log, presenceTopic.name, options)
  const want = { projection: 'presence-latest', heads: heads ?? [] }
  const { reached, served } = await waitForTable(needs, want, options)
  const rows = await served.tables.rows(
    `SELECT l.user_key AS userKey FROM {presence_latest: Identifier} AS l FINAL WHERE l.field = 'seen'
      AND l.value = 'offline'`,
    {},
    { signal }
  )
  return {
    offline: new Set(rows.map(({ userKey }) => String(userKey))),
    isNewest: heads !== undefined && reached.has(heads)
  }
}

/** Returns the users known to be offline while the tables lag: by the last page, else by the tables. */
function withoutTables(lastShown: ReadonlyMap<string, boolean>, offline: ReadonlySet<string>): ReadonlySet<string> {
  const shown = [...lastShown].filter(([, isOnline]) => !isOnline).map(([userKey]) => userKey)
  return new Set([...shown, ...[...offline].filter((userKey) => !lastShown.has(userKey))])
}

function shownOn(players: readonly ShownPlayer[]): Map<string, boolean> {
  return new Map(players.map(({ username, isOnline }) => [nameKey(username), isOnline]))
}
