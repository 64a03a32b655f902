import { createHash } from 'node:crypto'
import {
  boardKey,
  instantOf,
  type LeaderboardEntryChanged,
  leaderboardEntryTopic,
  leaderboardTopic,
  millisecondsOf,
  type ReadTables
} from '@gamenet/schemas'
import { type Heads, headsOf, type TableProgress } from '../caught-up.js'
import type { FetchedPage } from '../fetch/page-fetcher.js'
import type { ListedBoard } from '../pages/board-list.js'
import type { GamePage, ShownBoard } from '../pages/game-page.js'
import type { PageParsing } from '../pages/page-parsing.js'
import type { PagePart } from '../pages/parsed-page.js'
import type { LogExtents } from '../ports/log.js'
import { publication } from '../publish/publish.js'
import type { Reader } from '../scrape/reading.js'
import { type KnownBoard, leaderboardsOf } from '../sources/leaderboard.js'
import type { BoardLease, BoardLeases, EqualPage, VisitResult } from './board-leases.js'
import { diffBoard } from './diff-board.js'
import { type BoardState, lastBoard } from './last-board.js'
import { nextPeriodS, restAfterFailureS, restS } from './visit-period.js'

/** The result of one visit. */
export type Visit =
  | {
      readonly outcome: 'changed' | 'unchanged'
      /** What was published of the board's entries. */
      readonly changes: readonly LeaderboardEntryChanged[]
      /** A part of the page that could not be read. */
      readonly fault?: string
    }
  /** Upstream said that the page is as it was. */
  | { readonly outcome: 'not-modified' }
  /** The board has no page: it vanished since its title's list was read, which is due now. No fault, and nothing to publish. */
  | { readonly outcome: 'absent' }
  /** `isAnswered`: upstream is there, though not with a page that can be read. */
  | { readonly outcome: 'failed'; readonly fault: string; readonly isAnswered: boolean }
  /** What was published of the board before cannot be read yet, so what is new cannot be known. */
  | { readonly outcome: 'behind'; readonly fault: string }
  /** Another process holds the lease now, or the service stops. */
  | { readonly outcome: 'given-up' }

export type VisitNeeds = {
  readonly parsing: PageParsing
  readonly tables: ReadTables
  readonly log: LogExtents
  readonly leases: BoardLeases
  /** Period of a board on which something moves all the time, seconds. */
  readonly shortestS: number
  /** From 0 to below 1. */
  readonly random: () => number
}

/** What was looked up for all visits of a batch together. */
export type VisitBatch = {
  /** How far the entries of boards can be read. */
  readonly reached: TableProgress
  /** Ends of the log's partitions after the leases were acquired. */
  readonly headsWhenAcquired: Heads
  /** The oldest that the log has. */
  readonly oldestEpoch: number
  /** By {@link boardKey}. */
  readonly states: ReadonlyMap<string, BoardState>
  /** The boards of each title, by id: as the tables had them, and then as they were published. */
  readonly lists: ReadonlyMap<string, Map<number, KnownBoard>>
  /** Whether the tables had all that the log held of lists then. */
  readonly areListsKnown: boolean
  /** Titles that have left the network. */
  readonly departed: ReadonlySet<string>
  /** Titles whose leases were brought to their list in this batch, with the ids of that list. */
  readonly listed: Map<string, string>
  /** Titles whose list says something else than what is known: due when the batch ends, and with it a visit of the list. */
  readonly outdated: Set<string>
}

/** A board that the tables are behind of is looked at again after so long. */
const BEHIND_REST_S = 30
/** Unlike that of any board: of one with a single event, the first of all, the version is 0. */
const UNKNOWN: BoardState = { version: '', newestMs: -1 }

/**
 * One visit of a board, or of a title's list: fetch, compare with what is known, publish what changed. Whatever instant
 * it ends at, no change is published twice: a lease counts as unclean from when it was taken until its end is written, and
 * the board of an unclean lease is compared with the tables only when these have all that the log held when it was taken.
 * News of a list is published by its own visit alone; a board whose page shows it makes that visit due.
 * Rejects when the log, the tables or the leases cannot be asked; the lease then stays unclean until its next visit.
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
    return { outcome: 'behind', fault: `${pathOf(lease)}: what was published of it before cannot be read yet` }
  }
  if (batch.departed.has(lease.titleId)) return await visitDeparted(needs, reader, lease, batch)
  const before = stateOf(lease, batch)
  // An import may have changed the board since the page was found equal to it; then the page is wanted whole.
  const equal = lease.equal?.version === before.version ? lease.equal : null
  const validators = equal?.validators ?? {}
  const fetched = await reader.fetcher.fetch(pathOf(lease), { validators, signal, urgency: 'later' })
  if (signal.aborted) {
    await needs.leases.release([lease])
    return { outcome: 'given-up' }
  }
  if (!fetched.ok) {
    const visit = await failed(needs, lease, fetched.reason, fetched.isRefused === true)
    // Whether the board is still there, its list says; of a title without a page there is nothing else to ask.
    if (lease.leaderboardId === null || fetched.isAbsent !== true) return visit
    batch.outdated.add(lease.titleId)
    return { outcome: 'absent' }
  }
  if (!fetched.changed) {
    // The tables have all that was appended before, and are as they were when the page was found equal to them.
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
  const news = await newsOf(needs, lease, seen, signal).catch(async (error: unknown) => {
    // Nothing was appended yet. If this fails too, the lease expires.
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
  if (!(await leases.renew(lease))) return { outcome: 'given-up' }
  const known = batch.lists.get(titleId) ?? new Map<number, KnownBoard>()
  const boards = leaderboardId === null ? leaderboardsOf(titleId, [], known, Date.now()) : []
  await reader.publish(publication(leaderboardTopic, boards))
  if (leaderboardId === null) await leases.setBoards(titleId, [])
  await leases.drop(lease)
  return { outcome: boards.length > 0 ? 'changed' : 'unchanged', changes: [] }
}

/**
 * What the tables must have before a board is compared with them. Positions of an epoch that the log does not have any
 * more are never reached: those events were lost, or are in the epoch that replaced it.
 */
export function neededFor(lease: BoardLease, batch: Pick<VisitBatch, 'headsWhenAcquired' | 'oldestEpoch'>): Heads {
  const isOfThePast = lease.appended.some(({ epoch }) => epoch < batch.oldestEpoch)
  return lease.wasUnclean || isOfThePast ? batch.headsWhenAcquired : lease.appended
}

type ChangedPage = Extract<FetchedPage, { changed: true }>

/** What a page says that is not known yet. */
type News = {
  readonly fetched: ChangedPage
  readonly before: BoardState
  readonly list: PagePart<readonly ListedBoard[]>
  readonly boards: ReturnType<typeof leaderboardsOf>
  /** The list does not have the board that was asked for. */
  readonly isVanished: boolean
  readonly entries: PagePart<readonly LeaderboardEntryChanged[]>
  /** Hash of the entries that the page shows; empty where they cannot be read. */
  readonly content: string
}

async function newsOf(
  { tables }: VisitNeeds,
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
  // A tenth of the work of reading the board back and comparing, and most visits find nothing new.
  const content = createHash('sha256').update(JSON.stringify(board.value.entries)).digest('base64')
  if (content === equal?.content) return { ...news, content, entries: { ok: true, value: [] } }
  const entries = diffBoard({
    titleId,
    leaderboardId,
    // After all that is known of the board, whatever other machines' clocks said.
    changedAt: instantOf(Math.max(fetched.answeredAtMs, before.newestMs + 1)),
    last: await lastBoard(tables, { titleId, leaderboardId }, signal),
    page: board.value.entries
  })
  return { ...news, content, entries: { ok: true, value: entries } }
}

/**
 * Why a page is not known to show the board that was asked for; undefined when it does. One whose list, all readable,
 * selects nothing shows what its address says, which is another one when it was redirected.
 */
function otherBoardIn(shown: ShownBoard, requestedId: number, address: string | undefined): string | undefined {
  if (shown.leaderboardId === requestedId) return undefined
  if (shown.leaderboardId === undefined && address !== undefined) {
    if (new URL(address).searchParams.get('leaderboard') === `${requestedId}`) return undefined
    return `asked for board ${requestedId}, and was led to a page that does not say which one it shows`
  }
  const named = typeof shown.leaderboardId === 'number' ? `board ${shown.leaderboardId}` : 'none'
  return `asked for board ${requestedId}, the page shows ${named}`
}

/** A page without any list is that of a game without boards; where there were some, it is broken: nothing is delisted. */
function listOf(list: GamePage['boards'], known: ReadonlyMap<number, KnownBoard>): PagePart<readonly ListedBoard[]> {
  if (!list.ok) return list
  if (list.value !== undefined) return { ok: true, value: list.value }
  const listed = [...known.values()].filter((board) => board.listed).length
  if (listed === 0) return { ok: true, value: [] }
  return { ok: false, reason: `the page has no list of boards, where ${listed} were listed` }
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
  if (!(await leases.renew(lease))) return { outcome: 'given-up' }
  const added = list.ok ? await followList(needs, reader, lease, batch, { list: list.value, boards }) : 0
  if (!entries.ok) return await failed(needs, lease, faults.join('; '), true)
  const changes = entries.value
  await reader.publish(publication(leaderboardEntryTopic, changes))
  const hasChanged = changes.length > 0 || (lease.leaderboardId === null && added + boards.length > 0)
  if (news.isVanished) await leases.drop(lease)
  else {
    // What is published now is known to be equal only once it is in the tables; so is a list that is new.
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
 * Publishes the news of a list, and brings the title's leases to it; gives how many were added. Of a list only one
 * visit is under way at a time, so that nothing of it is told twice: a visit of a board leaves what is new to that one.
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
  for (const { leaderboardId: id, name, listed = true, observedAt } of boards) {
    batch.lists.get(titleId)?.set(id, { name, listed, observedAtMs: millisecondsOf(observedAt) })
  }
  return await bringLeasesTo(leases, titleId, list, batch)
}

/** Once a title and batch, unless its list changes meanwhile. */
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

/** A visit that published nothing of the board leaves its lease as it was. */
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
