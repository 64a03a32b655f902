import {
  backoffMs,
  compareText,
  headsIn,
  headsOf,
  leaderboardEntryTopic,
  leaderboardTopic,
  titleTopic
} from '@gamenet/schemas'
import type { BoardLease, BoardLeases } from '../boards/board-leases.js'
import type { BoardMetrics } from '../boards/board-metrics.js'
import { knownLists, titlesWithBoards } from '../boards/known-lists.js'
import { boardStates } from '../boards/last-board.js'
import { neededFor, type Visit, type VisitBatch, type VisitNeeds, visitBoard } from '../boards/visit-board.js'
import { furthest, tableProgress, waitForTable } from '../caught-up.js'
import { namedGaps, type Reader, type Reading, type Source, STOPPING } from '../fetch/reading.js'
import { servedTables, type TableAccess } from '../ports/served-tables.js'

/** Maximum number of visits per run: few enough for timely reports, enough to amortize the shared queries. */
const BATCH_VISITS_MAX = 50
const BATCH_MS = 30_000
/** One page is read while another is compared and a third is published. Requests to upstream stay sequential. */
const VISITS_AT_ONCE = 3
/** Longest wait for the tables to contain earlier visits' events. Boards without them are postponed. */
const CAUGHT_UP_MS = 20_000
/** Interval between two reads of the titles. */
const TITLES_EVERY_MS = 60_000
/** After this many unanswered pages in a row, upstream counts as unavailable. */
const UNANSWERED_MAX = 3
const REST = { firstMs: 10_000, maxMs: 300_000 }

export type BoardsNeeds = Omit<VisitNeeds, 'leases'> &
  TableAccess & {
    /** Opens the leases with the first run: a command that visits no board needs none. */
    readonly leases: () => Promise<BoardLeases>
    readonly metrics: BoardMetrics
  }

/** Visits boards: each run visits some due ones. */
export type BoardsSource = Source & {
  /** Whether the last run found as many due boards as a run visits: there may be more. */
  hasMore(): boolean
  /** Visits everything once, due or not, some per run, until nothing is left. */
  everything(): Source
}

/** Visits the boards of all titles and their lists when they are due, active boards more often than quiet ones. */
export function boardsSource(needs: BoardsNeeds): BoardsSource {
  let departed: ReadonlySet<string> = new Set()
  let titlesAtMs = Number.NEGATIVE_INFINITY
  let restUntilMs = Number.NEGATIVE_INFINITY
  let troubles = 0
  let hasMore = false
  const addTitles = async (leases: BoardLeases, signal: AbortSignal) => {
    if (performance.now() - titlesAtMs < TITLES_EVERY_MS) return
    const { tables } = await servedTables(needs)
    const titles = await titlesWithBoards(tables, signal)
    departed = titles.departed
    if (titles.onNetwork.length > 0) await leases.add(titles.onNetwork)
    for (const titleId of departed) await leases.hastenList(titleId)
    // Before the first title is known, the next run looks again.
    if (titles.onNetwork.length > 0) titlesAtMs = performance.now()
  }
  /** An unavailable upstream or engine is not retried at once. */
  const rest = (isTrouble: boolean) => {
    troubles = isTrouble ? troubles + 1 : 0
    if (isTrouble) restUntilMs = performance.now() + backoffMs(REST, troubles)
  }
  return {
    name: 'boards',
    hasMore: () => hasMore,
    async read(reader, signal) {
      if (performance.now() < restUntilMs) return { ok: true, isIdle: true }
      try {
        const leases = await needs.leases()
        await addTitles(leases, signal)
        const taken = await leases.acquire(BATCH_VISITS_MAX)
        hasMore = taken.length === BATCH_VISITS_MAX
        const { reading, isUnavailable } = await visitSome({ ...needs, leases, departed }, reader, taken, signal)
        rest(isUnavailable)
        return reading
      } catch (error) {
        rest(true)
        throw error
      }
    },
    everything() {
      let beganAt: Date | undefined
      let isOver = false
      let done = 0
      /** Even a run that finds nothing publishes its scrape event. */
      const reported = (reading: Reading, isFirst: boolean): Reading =>
        isFirst && reading.ok && 'isIdle' in reading ? { ok: true, publications: [], gaps: [] } : reading
      return {
        name: 'boards',
        async read(reader, signal) {
          if (isOver) return { ok: true, isIdle: true }
          isOver = true
          const leases = await needs.leases()
          const isFirst = beganAt === undefined
          if (isFirst) {
            titlesAtMs = Number.NEGATIVE_INFINITY
            const heads = await headsOf(needs.log, titleTopic.name)
            await waitForTable(needs, { projection: 'title', heads }, { timeoutMs: CAUGHT_UP_MS, signal })
          }
          beganAt ??= await leases.now()
          await addTitles(leases, signal)
          const taken = await leases.acquire(BATCH_VISITS_MAX, { untriedSince: beganAt })
          const onVisits = (visits: number, all: number) => {
            done += visits
            reader.onProgress?.(done, Math.max(done, all))
          }
          const { reading, isUnavailable } = await visitSome(
            { ...needs, leases, departed, onVisits },
            reader,
            taken,
            signal
          )
          // An unavailable upstream gets no further requests in this run.
          isOver = isUnavailable
          return reported(reading, isFirst)
        }
      }
    }
  }
}

type BatchNeeds = VisitNeeds &
  TableAccess & {
    /** Titles that have left the network. */
    readonly departed: ReadonlySet<string>
    readonly metrics: BoardMetrics
    /** Called with the number of visits since the last call, and the number of leases. */
    readonly onVisits?: (visits: number, all: number) => void
  }

async function visitSome(
  needs: BatchNeeds,
  reader: Reader,
  taken: readonly BoardLease[],
  signal: AbortSignal
): Promise<{ reading: Reading; isUnavailable: boolean }> {
  const counted = await needs.leases.count()
  needs.metrics.counted(counted)
  if (taken.length === 0) return { reading: { ok: true, isIdle: true }, isUnavailable: false }
  needs.onVisits?.(0, counted.all)
  const left = [...taken].sort((a, b) => compareText(a.titleId, b.titleId))
  const visits: Visit[] = []
  let unanswered = 0
  let isFailing = false
  const visitBatch = async (batch: VisitBatch, untilMs: number) => {
    while (!isFailing && !signal.aborted && performance.now() < untilMs && unanswered < UNANSWERED_MAX) {
      // From here on the visit itself ends the lease.
      const lease = left.shift()
      if (lease === undefined) return
      const visit = await visitBoard(needs, reader, lease, batch, signal)
      visits.push(visit)
      needs.metrics.visited(visit)
      needs.onVisits?.(1, counted.all)
      if (visit.outcome !== 'behind') unanswered = visit.outcome === 'failed' && !visit.isAnswered ? unanswered + 1 : 0
    }
  }
  try {
    const batch = await lookUp(needs, left, signal)
    const untilMs = performance.now() + BATCH_MS
    const visiting = Array.from({ length: VISITS_AT_ONCE }, () =>
      visitBatch(batch, untilMs).catch((error: unknown) => {
        isFailing = true
        throw error
      })
    )
    const ended = await Promise.allSettled(visiting)
    for (const titleId of batch.outdated) await needs.leases.hastenList(titleId)
    for (const each of ended) if (each.status === 'rejected') throw each.reason
  } finally {
    // An error here would hide the one that led here. Leases that are not released expire.
    await needs.leases.release(left).catch(() => undefined)
  }
  return { reading: readingOf(visits, signal), isUnavailable: unanswered > 0 && unanswered === visits.length }
}

/** Reads the published state that all visits of a batch need. */
async function lookUp(needs: BatchNeeds, leases: readonly BoardLease[], signal: AbortSignal): Promise<VisitBatch> {
  const { log, departed } = needs
  const extents = await log.extents(leaderboardEntryTopic.name)
  const taken = {
    headsWhenAcquired: headsIn(extents),
    oldestEpoch: Math.min(...extents.map(({ epoch }) => epoch))
  }
  // A topic that was never written has no epoch and no events.
  const heads = furthest(leases.map((lease) => neededFor(lease, taken)))
  const options = { timeoutMs: CAUGHT_UP_MS, signal }
  await waitForTable(needs, { projection: 'leaderboard-entry', heads }, options)
  const listHeads = await headsOf(log, leaderboardTopic.name)
  const { served, reached: reachedLists } = await waitForTable(
    needs,
    { projection: 'leaderboard', heads: listHeads },
    options
  )
  const { tables } = served
  const boards = leases.flatMap(({ titleId, leaderboardId }) =>
    leaderboardId === null ? [] : [{ titleId, leaderboardId }]
  )
  return {
    tables,
    // Of the same tables as the states: others may have been waited for.
    reached: await tableProgress(served, 'leaderboard-entry'),
    ...taken,
    states: await boardStates(tables, boards, signal),
    lists: await knownLists(tables, [...new Set(leases.map(({ titleId }) => titleId))], signal),
    areListsKnown: reachedLists.has(listHeads),
    departed,
    listed: new Map(),
    outdated: new Set()
  }
}

function readingOf(visits: readonly Visit[], signal: AbortSignal): Reading {
  const gaps = visits.flatMap((visit) => ('fault' in visit && visit.fault !== undefined ? [visit.fault] : []))
  // A board without a page counts as neither: the visit of its list reports it.
  const answered = visits.filter(({ outcome }) => outcome !== 'absent')
  const unread = answered.filter(({ outcome }) => outcome === 'failed' || outcome === 'behind').length
  if (signal.aborted) {
    const givenUp = answered.filter(({ outcome }) => outcome === 'given-up').length
    return unread + givenUp < answered.length
      ? { ok: true, publications: [], gaps: [...gaps, STOPPING] }
      : { ok: false, reason: STOPPING }
  }
  if (answered.length > 0 && unread === answered.length) return { ok: false, reason: namedGaps(gaps) }
  return { ok: true, publications: [], gaps }
}
