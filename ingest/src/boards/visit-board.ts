import { createHash } from 'node:crypto'
import {
  boardKey,
  type Heads,
  headsOf,
  instantOf,
  type LeaderboardEntryChanged,
  type LogExtents,
  leaderboardEntryTopic,
  leaderboardTopic,
  millisecondsOf,
  type ReadTables
} from '@gamenet/schemas'
import type { TableProgress } from '../caught-up.js'
import type { FetchedPage } from '../fetch/page-fetcher.js'
import type { Reader } from '../fetch/reading.js'
import type { ListedBoard } from '../pages/board-list.js'
import type { GamePage, ShownBoard } from '../pages/game-page.js'
import type { PageParsing } from '../pages/page-parsing.js'
import type { PagePart } from '../pages/parsed-page.js'
import { publication } from '../publish/publish.js'
import { type KnownBoard, leaderboardsOf } from '../sources/leaderboard.js'
import type { BoardLease, BoardLeases, EqualPage, VisitResult } from './board-leases.js'
import { diffBoard } from './diff-board.js'
import { type BoardState, lastBoard } from './last-board.js'
import { nextPeriodS, restAfterFailureS, restS } from './visit-period.js'

/** The result of one visit. */
export type Visit =
  | {
      readonly outcome: 'changed' | 'unchanged'
      /** Published changes of the board's entries. */
      readonly changes: readonly LeaderboardEntryChanged[]
      /** The reason why a part of the page could not be read. */
      readonly fault?: string
    }
  /** Upstream answered that the page has not changed. */
  | { readonly outcome: 'not-modified' }
  /**
   * The board has no page: it vanished after its title's list was read, which is now due. No fault; nothing is
   * published.
   */
  | { readonly outcome: 'absent' }
  /** `isAnswered`: upstream answered, but not with a readable page. */
  | { readonly outcome: 'failed'; readonly fault: string; readonly isAnswered: boolean }
  /** The tables lack earlier events of the board, so changes cannot be computed. */
  | { readonly outcome: 'behind'; readonly fault: string }
  /** Another process holds the lease, which is a fault, or the service stops. */
  | { readonly outcome: 'given-up'; readonly fault?: string }

export type VisitNeeds = {
  readonly parsing: PageParsing
  readonly log: LogExtents
  readonly leases: BoardLeases
  /** Period of a board that always changes, in seconds. */
  readonly shortestS: number
  /** From 0 to below 1. */
  readonly random: () => number
}

/** State shared by all visits of a batch. */
export type VisitBatch = {
  /** The tables that all of them compare with. */
  readonly tables: ReadTables
  /** Progress of the table of entries. */
  readonly reached: TableProgress
  /** Ends of the log's partitions after the leases were acquired. */
  readonly headsWhenAcquired: Heads
  /** The oldest epoch in the log. */
  readonly oldestEpoch: number
  /** By {@link boardKey}. */
  readonly states: ReadonlyMap<string, BoardState>
  /** The boards of each title, by id: from the tables, then updated as published. */
  readonly lists: ReadonlyMap<string, Map<number, KnownBoard>>
  /** Whether the tables contained all events of lists in the log. */
  readonly areListsKnown: boolean
  /** Titles that have left the network. */
  readonly departed: ReadonlySet<string>
  /** Titles whose leases were set to their list in this batch, with the ids of that list. */
  readonly listed: Map<string, string>
  /** Titles whose list differs from the known one. Their list becomes due when the batch ends. */
  readonly outdated: Set<string>
}

/** Delay before the next visit of a board whose events the tables lack. */
const BEHIND_REST_S = 30
/** Unlike any board's state: the version of a board with a single event, the first of all, is 0. */
const UNKNOWN: BoardState = { version: '', newestMs: -1 }

/**
 * Visits a board or a title's list once: fetches, compares with the known state, publishes the changes. No change is
 * published twice, whenever the visit ends: a lease is unclean from its acquisition until its end is written, and the
 * board of an unclean lease is compared with the tables only when they contain everything that the log held at the
 * acquisition. Only the visit of a list publishes changes of the list; a board whose page shows such a change makes
 * that visit due.
 * Rejects when the log, the tables or the leases are unavailable. The lease then stays unclean until its next visit.
 */
export async function visitBoard(
  needs: VisitNeeds,
  reader: Reader,
  lease: BoardLease,
  batch: VisitBatch,
  signal: AbortSignal
): Promise<Visit> {
  const needed = neededFor(lease, batch)
  if (!(lease.leaderboardId === null ? batch.areListsKnown : batch.reached.has(needed))) {
    await needs.leases.end(lease, { ...unchanged(lease), restS: BEHIND_REST_S })
    return { outcome: 'behind', fault: `${pathOf(lease)}: the tables do not contain its earlier changes yet` }
  }
  if (batch.departed.has(lease.titleId)) return await visitDeparted(needs, reader, lease, batch)
  const before = stateOf(lease, batch)
  // An import may have changed the board since; then the whole page is needed.
  const equal = lease.equal?.version === before.version ? lease.equal : null
  const validators = equal?.validators ?? {}
  const fetched = await reader.fetcher.fetch(pathOf(lease), { validators, signal, urgency: 'later' })
  if (signal.aborted) {
    await needs.leases.release([lease])
    return { outcome: 'given-up' }
  }
  if (!fetched.ok) {
    const visit = await failed(needs, lease, fetched.reason, fetched.isRefused === true)
    // The list shows whether the board still exists. A title without a page has no list to read.
    if (lease.leaderboardId === null || fetched.isAbsent !== true) return visit
    batch.outdated.add(lease.titleId)
    return { outcome: 'absent' }
  }
  if (!fetched.changed) {
    // The tables contain everything that was appended, and have not changed since the page was equal to them.
    await needs.leases.end(lease, {
      ...unchanged(lease),
      ...rested(needs, lease, false),
      isUnclean: false,
      appended: []
    })
    return { outcome: 'not-modified' }
  }
  const parsed = await needs.parsing.parse('game', fetched.html, fetched.address)
  if (!parsed.ok) return await failed(needs, lease, `${fetched.address}: ${parsed.reason}`, true)
  const seen = { page: parsed.page, fetched, before, equal, batch }
  const news = await newsOf(lease, seen, signal).catch(async (error: unknown) => {
    // Nothing was appended yet. If the release fails too, the lease expires.
    await needs.leases.release([lease]).catch(() => undefined)
    throw error
  })
  return await publishNews(needs, reader, lease, batch, news)
}

/** Delists the boards of a title that has left the network, without its page, and deletes its leases. */
async function visitDeparted(
  { leases }: VisitNeeds,
  reader: Reader,
  lease: BoardLease,
  batch: VisitBatch
): Promise<Visit> {
  const { titleId, leaderboardId } = lease
  if (!(await leases.renew(lease))) return overtaken(lease)
  const known = batch.lists.get(titleId) ?? new Map<number, KnownBoard>()
  const boards = leaderboardId === null ? leaderboardsOf(titleId, [], known, Date.now()) : []
  await reader.publish(publication(leaderboardTopic, boards))
  if (leaderboardId === null) await leases.setBoards(titleId, [])
  await leases.drop(lease)
  return { outcome: boards.length > 0 ? 'changed' : 'unchanged', changes: [] }
}

/**
 * Returns the heads that the tables must reach before a board is compared with them. Positions of an epoch that the log
 * no longer has are excluded: those events were lost, or are in the next epoch.
 */
export function neededFor(lease: BoardLease, batch: Pick<VisitBatch, 'headsWhenAcquired' | 'oldestEpoch'>): Heads {
  const isOfThePast = lease.appended.some(({ epoch }) => epoch < batch.oldestEpoch)
  return lease.wasUnclean || isOfThePast ? batch.headsWhenAcquired : lease.appended
}

type ChangedPage = Extract<FetchedPage, { changed: true }>

/** The unknown facts of a page. */
type News = {
  readonly fetched: ChangedPage
  readonly before: BoardState
  readonly list: PagePart<readonly ListedBoard[]>
  readonly boards: ReturnType<typeof leaderboardsOf>
  /** The list does not contain the requested board. */
  readonly isVanished: boolean
  readonly entries: PagePart<readonly LeaderboardEntryChanged[]>
  /** Hash of the page's entries; empty if they cannot be read. */
  readonly content: string
}

async function newsOf(
  lease: BoardLease,
  seen: { page: GamePage; fetched: ChangedPage; before: BoardState; equal: EqualPage | null; batch: VisitBatch },
  signal: AbortSignal
): Promise<News> {
  const { page, fetched, before, equal, batch } = seen
  const { titleId, leaderboardId } = lease
  const known = batch.lists.get(titleId) ?? new Map<number, KnownBoard>()
  const list = listOf(page.boards, known)
  const boards = list.ok ? leaderboardsOf(titleId, list.value, known, fetched.answeredAtMs) : []
  const isVanished =
    leaderboardId !== null && list.ok && !list.value.some((each) => each.leaderboardId === leaderboardId)
  const news = { fetched, before, list, boards, isVanished, content: '' }
  if (leaderboardId === null || isVanished) return { ...news, entries: { ok: true, value: [] } }
  const { board } = page
  if (!board.ok) return { ...news, entries: board }
  const fault = otherBoardIn(board.value, leaderboardId, list.ok ? fetched.address : undefined)
  if (fault !== undefined) return { ...news, entries: { ok: false, reason: fault } }
  // Costs a tenth of reading the board back and comparing. Most visits find nothing new.
  const content = createHash('sha256').update(JSON.stringify(board.value.entries)).digest('base64')
  if (content === equal?.content) return { ...news, content, entries: { ok: true, value: [] } }
  const entries = diffBoard({
    titleId,
    leaderboardId,
    // After everything known of the board, regardless of other machines' clocks.
    changedAt: instantOf(Math.max(fetched.answeredAtMs, before.newestMs + 1)),
    last: await lastBoard(batch.tables, { titleId, leaderboardId }, signal),
    page: board.value.entries
  })
  return { ...news, content, entries: { ok: true, value: entries } }
}

/**
 * Returns why a page may not show the requested board; undefined if it does. A readable list without a selected board
 * shows the board of its address, which differs after a redirect.
 */
function otherBoardIn(shown: ShownBoard, requestedId: number, address: string | undefined): string | undefined {
  if (shown.leaderboardId === requestedId) return undefined
  if (shown.leaderboardId === undefined && address !== undefined) {
    if (new URL(address).searchParams.get('leaderboard') === `${requestedId}`) return undefined
    return `requested board ${requestedId}, and was redirected to a page that does not name its board`
  }
  const named = typeof shown.leaderboardId === 'number' ? `board ${shown.leaderboardId}` : 'none'
  return `requested board ${requestedId}, the page shows ${named}`
}

/**
 * Returns the list of a page. A page without a list belongs to a game without boards. If boards were known, the page is
 * broken, and nothing is delisted.
 */
function listOf(list: GamePage['boards'], known: ReadonlyMap<number, KnownBoard>): PagePart<readonly ListedBoard[]> {
  if (!list.ok) return list
  if (list.value !== undefined) return { ok: true, value: list.value }
  const listed = [...known.values()].filter((board) => board.listed).length
  if (listed === 0) return { ok: true, value: [] }
  return { ok: false, reason: `the page has no list of boards, although ${listed} boards were listed` }
}

async function publishNews(
  needs: VisitNeeds,
  reader: Reader,
  lease: BoardLease,
  batch: VisitBatch,
  news: News
): Promise<Visit> {
  const { leases } = needs
  const { list, entries, boards, fetched } = news
  const faults = [list, entries].flatMap((part) => (part.ok ? [] : [`${fetched.address}: ${part.reason}`]))
  if (!list.ok && (!entries.ok || lease.leaderboardId === null))
    return await failed(needs, lease, faults.join('; '), true)
  // A process without the lease must not append: the holder compares with tables that lack its events.
  if (!(await leases.renew(lease))) return overtaken(lease)
  const added = list.ok ? await followList(needs, reader, lease, batch, { list: list.value, boards }) : 0
  if (!entries.ok) return await failed(needs, lease, faults.join('; '), true)
  const changes = entries.value
  await reader.publish(publication(leaderboardEntryTopic, changes))
  const hasChanged = changes.length > 0 || (lease.leaderboardId === null && added + boards.length > 0)
  if (news.isVanished) await leases.drop(lease)
  else {
    // A published change, or a changed list, is known to be equal only when it is in the tables.
    const isEqual = changes.length === 0 && list.ok && boards.length === 0 && lease.leaderboardId !== null
    await leases.end(lease, {
      ...rested(needs, lease, hasChanged),
      isUnclean: false,
      appended: changes.length === 0 ? [] : await headsOf(needs.log, leaderboardEntryTopic.name),
      equal: isEqual ? { validators: fetched.validators, content: news.content, version: news.before.version } : null
    })
  }
  const outcome = hasChanged ? 'changed' : 'unchanged'
  return faults.length === 0 ? { outcome, changes } : { outcome, changes, fault: faults.join('; ') }
}

/**
 * Publishes the changes of a list, sets the title's leases to it, and returns how many were added. Only one visit of a
 * list runs at a time, so no change is published twice; visits of boards leave the list's changes to it.
 */
async function followList(
  { leases }: VisitNeeds,
  reader: Reader,
  { titleId, leaderboardId }: BoardLease,
  batch: VisitBatch,
  { list, boards }: { readonly list: readonly ListedBoard[]; readonly boards: News['boards'] }
): Promise<number> {
  if (leaderboardId !== null && boards.length > 0) {
    batch.outdated.add(titleId)
    return 0
  }
  await reader.publish(publication(leaderboardTopic, boards))
  for (const { leaderboardId: id, name, listed = true, observedAt } of boards)
    batch.lists.get(titleId)?.set(id, { name, listed, observedAtMs: millisecondsOf(observedAt) })
  return await bringLeasesTo(leases, titleId, list, batch)
}

/** Runs once per title and batch, unless the list changes meanwhile. */
async function bringLeasesTo(
  leases: BoardLeases,
  titleId: string,
  list: readonly ListedBoard[],
  batch: VisitBatch
): Promise<number> {
  const ids = list.map(({ leaderboardId }) => leaderboardId)
  if (batch.listed.get(titleId) === ids.join()) return 0
  batch.listed.set(titleId, ids.join())
  return (await leases.setBoards(titleId, ids)).added
}

async function failed(needs: VisitNeeds, lease: BoardLease, fault: string, isAnswered: boolean): Promise<Visit> {
  const failures = lease.failures + 1
  await needs.leases.end(lease, {
    ...unchanged(lease),
    failures,
    restS: restAfterFailureS(failures, needs.shortestS, needs.random()),
    equal: null
  })
  return { outcome: 'failed', fault, isAnswered }
}

function overtaken(lease: BoardLease): Visit {
  const fault = `${pathOf(lease)}: given up, because it took longer than its lease and another process visits it now`
  return { outcome: 'given-up', fault }
}

/** A visit that published nothing leaves the lease's state unchanged. */
function unchanged(lease: BoardLease): Omit<VisitResult, 'restS'> {
  const { periodS, failures, wasUnclean, appended, equal } = lease
  return { periodS, failures, isUnclean: wasUnclean, appended, equal }
}

function rested(
  { shortestS, random }: VisitNeeds,
  lease: BoardLease,
  hasChanged: boolean
): Pick<VisitResult, 'periodS' | 'restS' | 'failures'> {
  const periodS = nextPeriodS(lease.periodS, hasChanged, shortestS)
  const isFirst = lease.equal === null && lease.appended.length === 0 && lease.periodS <= shortestS
  return { periodS, restS: restS(periodS, random(), isFirst), failures: 0 }
}

function stateOf({ titleId, leaderboardId }: BoardLease, { states }: VisitBatch): BoardState {
  return (leaderboardId === null ? undefined : states.get(boardKey({ titleId, leaderboardId }))) ?? UNKNOWN
}

function pathOf({ titleId, leaderboardId }: BoardLease): string {
  return `/games/${titleId}${leaderboardId === null ? '' : `?leaderboard=${leaderboardId}`}`
}
