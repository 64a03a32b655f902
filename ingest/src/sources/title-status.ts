import { millisecondsOf, type TitleStatusChanged } from '@gamenet/schemas'
import { servedTables, type TableAccess } from '../ports/served-tables.js'

/** A title has left the network when all lists of games lacked it for this long, and at least two lists did. */
const ABSENT_MS = 600_000
const ABSENT_LISTS_MIN = 2

/** One page that lists the games of the network. */
export type GamesList = {
  readonly titleIds: readonly string[]
  readonly observedAt: string
  /** Whether every row could be read. An incomplete list shows which titles are present, but not which are absent. */
  readonly isComplete: boolean
}

/** Returns the list of a page. */
export function listOf(
  titles: readonly { readonly titleId: string }[],
  observedAt: string,
  gaps: readonly string[]
): GamesList {
  return { titleIds: titles.map(({ titleId }) => titleId), observedAt, isComplete: gaps.length === 0 }
}

/** The titles on the network, according to all lists of games that this process reads. */
export type TitleRoster = {
  /**
   * Returns the titles that left or came back according to this list; empty while the tables are not readable. The same
   * changes are returned until they are remembered.
   */
  changes(list: GamesList, signal: AbortSignal): Promise<TitleStatusChanged[]>
  /** Called when the log has the changes. */
  remember(changes: readonly TitleStatusChanged[]): void
}

type Sight = { readonly onNetwork: boolean; readonly seenMs: number; readonly absences: number }

/**
 * Creates a roster. A start counts as a sighting: a title that left while no process ran is noticed `ABSENT_MS` after
 * the first list.
 */
export function createTitleRoster(access: TableAccess): TitleRoster {
  let sights: Map<string, Sight> | undefined
  const load = async (atMs: number, signal: AbortSignal) => {
    const known = await knownTitles(access, signal).catch(() => undefined)
    if (known === undefined) return undefined
    return new Map(known.map(({ titleId, onNetwork }) => [titleId, { onNetwork, seenMs: atMs, absences: 0 }]))
  }
  return {
    async changes({ titleIds, observedAt, isComplete }, signal) {
      if (titleIds.length === 0) return []
      const atMs = millisecondsOf(observedAt)
      sights ??= await load(atMs, signal)
      if (sights === undefined) return []
      const changed: TitleStatusChanged[] = []
      const listed = new Set(titleIds)
      for (const titleId of listed) {
        const onNetwork = sights.get(titleId)?.onNetwork ?? true
        if (!onNetwork) changed.push({ titleId, observedAt, onNetwork: true })
        sights.set(titleId, { onNetwork, seenMs: atMs, absences: 0 })
      }
      if (!isComplete) return changed
      for (const [titleId, sight] of sights) {
        if (listed.has(titleId) || !sight.onNetwork) continue
        const absences = sight.absences + 1
        sights.set(titleId, { ...sight, absences })
        if (absences >= ABSENT_LISTS_MIN && atMs - sight.seenMs >= ABSENT_MS)
          changed.push({ titleId, observedAt, onNetwork: false })
      }
      return changed
    },
    remember(changes) {
      for (const { titleId, onNetwork } of changes) {
        const sight = sights?.get(titleId)
        if (sight !== undefined) sights?.set(titleId, { ...sight, onNetwork })
      }
    }
  }
}

/** Reads the titles described by pages, not files, and whether they are on the network. */
async function knownTitles(
  access: TableAccess,
  signal: AbortSignal
): Promise<{ titleId: string; onNetwork: boolean }[]> {
  const { tables } = await servedTables(access)
  const rows = await tables.rows(
    `SELECT DISTINCT e.title_id AS titleId, e.title_id NOT IN (${DEPARTED_TITLES}) AS onNetwork
     FROM {event_title: Identifier} AS e WHERE e.import_id = ''`,
    {},
    { signal }
  )
  return rows.map((row) => ({ titleId: String(row.titleId), onNetwork: Number(row.onNetwork) === 1 }))
}

/** Statement for the ids of titles that are not on the network. */
export const DEPARTED_TITLES = 'SELECT s.title_id FROM {title_status: Identifier} AS s FINAL WHERE NOT s.on_network'
