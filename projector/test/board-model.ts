import {
  compareMeasures,
  type LeaderboardEntryChanged,
  millisecondsOf,
  nameKey,
  type RankGoal,
  ranked,
  rankGoals,
  type Standing
} from '@gamenet/schemas'

/*
 * What boards must look like, computed from their events as the words say it: with loops over everything, every time.
 */

/** An event at its place in the log. */
export type PlacedEntry = {
  readonly event: LeaderboardEntryChanged
  readonly position: bigint
  readonly partition: number
}

export type PlainState = Standing & {
  readonly ms: number
  readonly position: bigint
  readonly partition: number
  readonly isGone: boolean
  readonly details: string
  /** Which entry. */
  readonly who: string
}

export type PlainChange = {
  readonly state: PlainState
  readonly change: 'new' | 'updated' | 'removed' | undefined
  readonly recorded: PlainState
  readonly previousRank: number | null
  readonly newRank: number | null
  readonly previous: PlainState | undefined
}

export type PlainReign = {
  readonly who: string
  readonly rating: string
  readonly timeMs: number | null
  readonly setAt: number
  readonly fromAt: number
  readonly toAt: number | null
}

export type PlainBoard = {
  readonly states: readonly PlainState[]
  readonly present: readonly { readonly entry: PlainState; readonly rank: number }[]
  readonly gone: readonly PlainState[]
  readonly changes: readonly PlainChange[]
  readonly reigns: readonly PlainReign[]
  readonly reached: readonly PlainReached[]
}

/** When a player first stood where a goal asks for. */
export type PlainReached = { readonly playerKey: string; readonly goal: number; readonly atMs: number }

/** The tables of one board after its events, in any order of arrival. */
export function plainBoard(events: readonly PlacedEntry[], goals: readonly RankGoal[] = rankGoals): PlainBoard {
  const states = distinct(events)
  const last = newestOf(states)
  return {
    states,
    present: ranked(last.filter(({ isGone }) => !isGone)),
    gone: last.filter(({ isGone }) => isGone),
    changes: states.flatMap((state) => changeOf(state, states)),
    reigns: reignsOf(states),
    reached: reachedOf(states, goals)
  }
}

function distinct(events: readonly PlacedEntry[]): PlainState[] {
  const states = new Map<string, PlainState>()
  for (const { event, position, partition } of events) {
    const state: PlainState = {
      who: JSON.stringify([event.playerName, event.occurrence ?? 1]),
      playerName: event.playerName,
      occurrence: event.occurrence ?? 1,
      ms: millisecondsOf(event.changedAt),
      position,
      partition,
      isGone: event.changeType === 'removed',
      rating: event.rating ?? '',
      timeMs: event.timeMs ?? null,
      statedRank: event.rank ?? null,
      order: event.order ?? null,
      step: event.step ?? null,
      details: event.details === undefined ? '' : JSON.stringify(event.details)
    }
    const { position: _, partition: __, ...content } = state
    const key = JSON.stringify(content)
    const known = states.get(key)
    if (known === undefined || position < known.position) states.set(key, state)
  }
  return [...states.values()].sort(byTime)
}

function byTime(a: PlainState, b: PlainState): number {
  return a.ms - b.ms || Number(a.position > b.position) - Number(a.position < b.position)
}

/** Newest state of each entry; `states` by time. */
function newestOf(states: readonly PlainState[]): PlainState[] {
  return [...new Map(states.map((state) => [state.who, state])).values()]
}

function standingAt(states: readonly PlainState[], isSeen: (ms: number) => boolean) {
  return ranked(newestOf(states.filter(({ ms }) => isSeen(ms))).filter(({ isGone }) => !isGone))
}

function kindOfChange(state: PlainState, states: readonly PlainState[]): PlainChange['change'] {
  const before = states.filter((each) => each.who === state.who && byTime(each, state) < 0).at(-1)
  const wasThere = before !== undefined && !before.isGone
  if (state.isGone) return wasThere ? 'removed' : undefined
  if (!wasThere) return 'new'
  return isAsGood(before, state) ? undefined : 'updated'
}

function changeOf(state: PlainState, states: readonly PlainState[]): PlainChange[] {
  const later = states.filter(({ position }) => position >= state.position)
  const recorded = later
    .sort((a, b) => Number(a.position > b.position) - Number(a.position < b.position))
    .find(
      ({ position }) =>
        kindOfChange(
          state,
          states.filter((each) => each.position <= position)
        ) !== undefined
    )
  if (recorded === undefined) return []
  const change = kindOfChange(state, states)
  const rankIn = (isSeen: (ms: number) => boolean) =>
    standingAt(states, isSeen).find(({ entry }) => entry.who === state.who)?.rank ?? null
  return [
    {
      state,
      change,
      recorded,
      previousRank: change === undefined ? null : rankIn((ms) => ms < state.ms),
      newRank: change === undefined ? null : rankIn((ms) => ms <= state.ms),
      previous: states.filter((each) => each.who === state.who && byTime(each, state) < 0).at(-1)
    }
  ]
}

function reignsOf(states: readonly PlainState[]): PlainReign[] {
  const reigns: PlainReign[] = []
  const follow = (state: PlainState | undefined, setAt: number, at: number) => {
    const last = reigns.at(-1)
    if (last?.toAt === null) reigns[reigns.length - 1] = { ...last, toAt: at }
    if (state === undefined) return
    const { who, rating, timeMs } = state
    reigns.push({ who, rating, timeMs, setAt, fromAt: at, toAt: null })
  }
  const current = () => (reigns.at(-1)?.toAt === null ? reigns.at(-1) : undefined)
  for (const at of new Set(states.map(({ ms }) => ms))) {
    const present = standingAt(states, (ms) => ms <= at)
    if (present.some(({ entry }) => entry.order !== null || entry.statedRank !== null)) {
      const best = Math.min(...present.map(({ rank }) => rank))
      const leaders = present.filter(({ rank }) => rank === best).map(({ entry }) => entry)
      const holder = current()
      if (holder !== undefined && leaders.some((leader) => shows(leader, holder))) continue
      const [first] = leaders
      if (first !== undefined)
        follow(
          first,
          shownSince(
            first,
            states.filter(({ ms }) => ms <= at)
          ),
          at
        )
      continue
    }
    for (const event of states.filter(({ ms }) => ms === at)) {
      const best = bestValid(states.filter((each) => byTime(each, event) <= 0))
      const holder = current()
      if (best !== undefined && holder !== undefined && shows(best, holder) && holder.setAt === best.ms) continue
      follow(best, best?.ms ?? at, at)
    }
  }
  return reigns
}

function reachedOf(states: readonly PlainState[], goals: readonly RankGoal[]): PlainReached[] {
  const reached = new Map<string, PlainReached>()
  for (const atMs of new Set(states.map(({ ms }) => ms))) {
    const present = standingAt(states, (ms) => ms <= atMs)
    const best = Math.min(...present.map(({ rank }) => rank))
    for (const { id, rank: most, entries, isShared } of goals) {
      for (const { entry, rank } of present) {
        const playerKey = nameKey(entry.playerName)
        const others = present.filter((each) => nameKey(each.entry.playerName) !== playerKey && each.rank === rank)
        if (rank > most || present.length < entries || (isShared && (rank > best || others.length === 0))) continue
        const key = `${playerKey}/${id}`
        if (!reached.has(key)) reached.set(key, { playerKey, goal: id, atMs })
      }
    }
  }
  const text = ({ atMs, goal, playerKey }: PlainReached) => `${atMs}/${String(goal).padStart(3, '0')}/${playerKey}`
  return [...reached.values()].sort((a, b) => a.atMs - b.atMs || (text(a) < text(b) ? -1 : 1))
}

/** A time is the same however it is written; a score is its text. */
function isAsGood(a: Pick<PlainState, 'rating' | 'timeMs'>, b: Pick<PlainState, 'rating' | 'timeMs'>): boolean {
  return a.timeMs === null && b.timeMs === null ? a.rating === b.rating : a.timeMs === b.timeMs
}

function shows(state: PlainState, reign: PlainReign): boolean {
  return state.who === reign.who && isAsGood(state, reign)
}

/** When the entry began to show the rating that it shows now. */
function shownSince(state: PlainState, states: readonly PlainState[]): number {
  let since = state.ms
  for (const each of states.filter(({ who }) => who === state.who).toReversed()) {
    if (each.isGone || !isAsGood(each, state)) break
    since = each.ms
  }
  return since
}

function bestValid(states: readonly PlainState[]): PlainState | undefined {
  const isMeasured = ({ isGone, order, statedRank }: PlainState) => !isGone && order === null && statedRank === null
  const valid = states
    .filter(isMeasured)
    .filter((state) => !states.some((each) => each.who === state.who && !isMeasured(each) && byTime(each, state) > 0))
  return valid.sort((a, b) => compareMeasures(a, b) || byTime(a, b))[0]
}
