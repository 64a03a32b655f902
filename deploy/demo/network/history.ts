import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  instantOf,
  type LeaderboardDescribed,
  type LeaderboardEntryChanged,
  leaderboardEntryTopic,
  leaderboardTopic,
  millisecondsOf,
  type NetworkCounted,
  networkCountTopic,
  type PresenceSeen,
  presenceTopic,
  type TitleCounted,
  type TitleDescribed,
  type Topic,
  titleCountTopic,
  titleTopic
} from '@gamenet/schemas'
import { boardEventsAbout, boardHistory, firstSeenMs, PAST_MS } from './board-history.js'
import type { Board } from './boards.js'
import { eased } from './chance.js'
import type { HistoryJournal, HistoryProgress } from './history-journal.js'
import { type Stretch, stretchesBetween } from './players.js'
import { readOnlineHistory } from './samples.js'
import type { World } from './world.js'

/*
 * history   the events that the service would have published if it had run before its first start
 * sample    the shipped hours of a real network, with their own dates
 * part      a period of history of one topic; it is marked in the journal when the log has it
 */

/** Provenance of the shipped sample's events. */
export const SAMPLE_SOURCE = '/sample/online-hourly-2017-2026'

/** Provenance of the demo network's own history. */
export const DEMO_HISTORY_SOURCE = '/demo/history'

/** The log that history is appended to: `append` resolves when the events are stored durably. */
export type AppendHistory = <Event>(topic: Topic<Event>, events: readonly Event[], source: string) => Promise<void>

export type FillHistoryOptions = {
  readonly append: AppendHistory
  readonly world: World
  readonly journal: HistoryJournal
  /** Milliseconds since 1970; read once, at the very first start. Default: the machine's clock. */
  readonly now?: () => number
  /** The shipped sample, oldest first, unless given. */
  readonly sample?: readonly NetworkCounted[]
  readonly onProgress?: (progress: FillProgress) => void
  /** Stops between two parts, also during a pause; completed parts stay. */
  readonly signal?: AbortSignal
  /** Awaited before the first append of every part: more urgent work delays it here. */
  readonly pause?: () => Promise<void>
}

/** `events` of `total` are in the log; `isOfUsers`: events about users or boards are still missing. */
export type FillProgress = { readonly events: number; readonly total: number; readonly isOfUsers: boolean }

/** A stretch of history: at most {@link PART_EVENTS_MAX} events of one topic, a pure function of world and times. */
export type HistoryPart = {
  /** Unique and stable: noun, step and first instant. */
  readonly name: string
  /** Its number of events; of boards about. */
  readonly size: number
  /** Generates the events and appends them in order, {@link APPEND_EVENTS_MAX} at a time, yielding the event loop. */
  append(append: AppendHistory): Promise<void>
}

export const PART_EVENTS_MAX = 10_000

/** Maximum number of events per append: encoding and packing them blocks the event loop for about 10 ms. */
export const APPEND_EVENTS_MAX = 2500

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const MINUTES_SPAN_MS = 2 * DAY_MS
/** Steps of the newest counts of titles: by the minute they would be a third of all events. */
const TITLE_STEP_MS = 5 * MINUTE_MS
const HOURS_SPAN_MS = 90 * DAY_MS
/** Longer spans would fill the disk: sealed events do not compress, and these take about 15 MB. */
const PRESENCE_SPAN_MS = 28 * DAY_MS
const PRESENCE_STEP_MS = 15 * MINUTE_MS
const PRESENCE_PART_MS = 2 * DAY_MS
/** Time in which the repeated last week of the sample fades into the demo's own numbers. */
const BLEND_MS = 42 * DAY_MS
const WEEK_HOURS = 168
/** Below {@link PART_EVENTS_MAX}, because the number of a board's events is an estimate. */
const BOARD_EVENTS_MAX = 7500
/** Parts whose events achievements depend on. */
const OF_USERS = /^(?:presence|leaderboard-entry)/
/** Generating events blocks the event loop for at most about this time. */
const SLICE_MS = 8

/**
 * Fills the log with history up to the minute of the first start: the shipped sample, the demo's own counts of the
 * network, counts of every title, sightings of the users, and changes of boards. Newest and shortest parts come first,
 * so that pages fill soon. The next call resumes after a crash at any instant. A part is marked after the log has it; a part that was
 * appended but not marked is appended again, with the same event ids, so it counts once. The first call fixes the end.
 */
export async function fillHistory(options: FillHistoryOptions): Promise<{ readonly finished: boolean }> {
  const { append, world, journal, signal, now = Date.now } = options
  let progress = (await journal.load()) ?? (await begin(journal, world.seed, now()))
  if (progress.seed !== world.seed) {
    throw new Error(
      `The history here was begun for the demo network of seed ${progress.seed}; this one has seed ${world.seed}. ` +
        'Start with the former seed, or with an empty data directory.'
    )
  }
  if (progress.finished) return { finished: true }
  const parts = planHistory(world, options.sample ?? (await readOnlineHistory()), millisecondsOf(progress.until))
  const total = parts.reduce((sum, part) => sum + part.size, 0)
  const done = new Set(progress.done)
  const stopped = stopOf(signal)
  const lastOfUsers = parts.findLastIndex(({ name }) => OF_USERS.test(name))
  let events = 0
  options.onProgress?.({ events, total, isOfUsers: lastOfUsers >= 0 })
  for (const [index, part] of parts.entries()) {
    if (!done.has(part.name)) {
      // The next part is generated while the tables take the last one.
      const turn = Promise.race([options.pause?.(), stopped])
      // It may reject before the part awaits it.
      turn.catch(() => undefined)
      await part.append(async (...events) => {
        await turn
        if (signal?.aborted !== true) await append(...events)
      })
      if (signal?.aborted === true) return { finished: false }
      progress = { ...progress, done: [...progress.done, part.name] }
      await journal.save(progress)
    }
    events += part.size
    options.onProgress?.({ events, total, isOfUsers: index < lastOfUsers })
  }
  await journal.save({ ...progress, finished: true })
  return { finished: true }
}

/**
 * Returns the parts of history up to an instant, in the order of their appends. In addition to the sample: network counts since
 * its end, hourly, and by the minute for the last two days; counts of titles for 90 days, hourly, and every five minutes for
 * the last two; sightings every quarter of an hour for four weeks; descriptions of titles; and, in a world with a past, two years of changes of boards.
 */
export function planHistory(world: World, sample: readonly NetworkCounted[], untilMs: number): HistoryPart[] {
  const minutesMs = floorTo(untilMs - MINUTES_SPAN_MS, HOUR_MS)
  const past = sampleBefore(sample, untilMs)
  const newest = past.at(-1)
  const sampleEndMs = newest === undefined ? minutesMs - HOURS_SPAN_MS : millisecondsOf(newest.observedAt) + HOUR_MS
  const ownMs = Math.min(Math.max(sampleEndMs, 0), untilMs)
  const networkCountAt = networkCounts(world, past, ownMs, minutesMs)
  const network = (fromMs: number, toMs: number, stepMs: number) =>
    ranges(fromMs, toMs, stepMs, PART_EVENTS_MAX).map((range) => networkPart(networkCountAt, range))
  const titles = (fromMs: number, toMs: number, stepMs: number) =>
    ranges(fromMs, toMs, stepMs, Math.max(1, Math.floor(PART_EVENTS_MAX / world.titles.length)))
      .map((range) => titlePart(world, range))
      .reverse()
  return [
    ...network(Math.max(minutesMs, ownMs), untilMs, MINUTE_MS),
    describedPart(world, untilMs),
    ...network(ownMs, minutesMs, HOUR_MS),
    ...sampleParts(past),
    ...presenceParts(world, untilMs),
    ...(world.hasPast ? boardParts(world, untilMs) : []),
    ...titles(minutesMs, untilMs, TITLE_STEP_MS),
    ...titles(floorTo(untilMs - HOURS_SPAN_MS, HOUR_MS), minutesMs, HOUR_MS)
  ]
}

/** Returns the sample without counts in the future, in case the clock is before its end. */
function sampleBefore(sample: readonly NetworkCounted[], untilMs: number): readonly NetworkCounted[] {
  let length = sample.length
  while (length > 0 && millisecondsOf(sample[length - 1]?.observedAt ?? '') >= untilMs) length -= 1
  return length === sample.length ? sample : sample.slice(0, length)
}

function stopOf(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) resolve()
    else signal?.addEventListener('abort', () => resolve(), { once: true })
  })
}

async function begin(journal: HistoryJournal, seed: number, nowMs: number): Promise<HistoryProgress> {
  const progress = { seed, until: instantOf(floorTo(nowMs, MINUTE_MS)), done: [], finished: false }
  await journal.save(progress)
  return progress
}

/**
 * Returns the function that computes the network's counts at an instant of history. After the end of the sample its last week
 * repeats, and fades into the world's own numbers. From the first minutely count on, only these are used, so that live counts
 * continue without a jump.
 */
function networkCounts(world: World, sample: readonly NetworkCounted[], startMs: number, minutesMs: number) {
  const lastWeek = new Map(
    sample.slice(-WEEK_HOURS).map(({ observedAt, online }) => [hourOfWeek(millisecondsOf(observedAt)), online])
  )
  const blendMs = Math.min(BLEND_MS, minutesMs - startMs)
  return (ms: number): NetworkCounted => {
    const { registered, online, lobbies } = world.networkAt(ms)
    const echo = lastWeek.get(hourOfWeek(ms))
    const share = blendMs <= 0 || echo === undefined ? 1 : eased((ms - startMs) / blendMs)
    const blended = Math.round(online * share + (echo ?? 0) * (1 - share))
    return {
      observedAt: instantOf(ms),
      registered,
      online: blended,
      lobbies: Math.round((lobbies * blended) / Math.max(1, online))
    }
  }
}

type Range = { readonly fromMs: number; readonly toMs: number; readonly stepMs: number }

function networkPart(countAt: (ms: number) => NetworkCounted, range: Range): HistoryPart {
  return {
    name: partName('network-count', range),
    size: instantsOf(range),
    append: async (append) => {
      const events: NetworkCounted[] = []
      await eachInstant(range, (ms) => events.push(countAt(ms)))
      await appendInPieces(append, networkCountTopic, events, DEMO_HISTORY_SOURCE)
    }
  }
}

function titlePart(world: World, range: Range): HistoryPart {
  return {
    name: partName('title-count', range),
    size: instantsOf(range) * world.titles.length,
    append: async (append) => {
      const events: TitleCounted[] = []
      await eachInstant(range, (ms) => {
        const observedAt = instantOf(ms)
        for (const { title, online, lobbies, lobbyPlayers } of world.networkAt(ms).titles) {
          events.push({ titleId: title.titleId, observedAt, online, sessions: lobbies, lobbyPlayers })
        }
      })
      await appendInPieces(append, titleCountTopic, events, DEMO_HISTORY_SOURCE)
    }
  }
}

/** What a catalogue says about the titles, and their pages do not. */
function describedPart(world: World, untilMs: number): HistoryPart {
  const observedAt = instantOf(floorTo(untilMs - PAST_MS, DAY_MS))
  const events = world.titles.map(({ titleId, name, publisher, releaseDate }): TitleDescribed => {
    const facts = { titleId, observedAt, name, ...(publisher !== '' && { publisher }) }
    return releaseDate === null ? facts : { ...facts, releaseDate }
  })
  return {
    name: `title/${observedAt}`,
    size: events.length,
    append: (append) => appendInPieces(append, titleTopic, events, DEMO_HISTORY_SOURCE)
  }
}

/** The boards of the most played titles first. A board is whole in one part, so that its history is folded once. */
function boardParts({ seed, titles, boardsOf }: World, untilMs: number): HistoryPart[] {
  const groups: { boards: Board[]; size: number }[] = []
  for (const board of titles.flatMap((title) => boardsOf(title).filter(({ eventMs }) => eventMs === undefined))) {
    const size = 1 + boardEventsAbout(seed, board, untilMs)
    const group = groups.at(-1)
    if (group === undefined || group.size + size > BOARD_EVENTS_MAX) groups.push({ boards: [board], size })
    else {
      group.boards.push(board)
      group.size += size
    }
  }
  return groups.map(({ boards, size }) => ({
    name: `leaderboard-entry/${boards[0]?.title.titleId}/${boards[0]?.leaderboardId}`,
    size,
    append: (append) => appendBoards(append, seed, boards, untilMs)
  }))
}

async function appendBoards(append: AppendHistory, seed: number, boards: readonly Board[], untilMs: number) {
  const described = boards.map((board): LeaderboardDescribed => {
    const { title, leaderboardId, name } = board
    return { titleId: title.titleId, leaderboardId, name, observedAt: instantOf(firstSeenMs(seed, board, untilMs)) }
  })
  await append(leaderboardTopic, described, DEMO_HISTORY_SOURCE)
  const events: LeaderboardEntryChanged[] = []
  let sliceStart = performance.now()
  for (const board of boards) {
    for (const visit of boardHistory(seed, board, untilMs)) {
      events.push(...visit)
      if (performance.now() - sliceStart > SLICE_MS) {
        await nextTurn()
        sliceStart = performance.now()
      }
    }
  }
  await appendInPieces(append, leaderboardEntryTopic, events, DEMO_HISTORY_SOURCE)
}

/** Newest first, so that profiles soon show the last sightings. */
function presenceParts(world: World, untilMs: number): HistoryPart[] {
  const firstMs = floorTo(untilMs - PRESENCE_SPAN_MS, DAY_MS)
  const count = Math.ceil((untilMs - firstMs) / PRESENCE_PART_MS)
  return Array.from({ length: count }, (_, number) => {
    const fromMs = firstMs + number * PRESENCE_PART_MS
    return presencePart(world, { fromMs, toMs: Math.min(untilMs, fromMs + PRESENCE_PART_MS), stepMs: PRESENCE_STEP_MS })
  }).reverse()
}

function presencePart(world: World, range: Range): HistoryPart {
  return {
    name: `presence/quarter/${instantOf(range.fromMs)}`,
    size: [...looksBetween(world, range)].length,
    append: async (append) => {
      const events: PresenceSeen[] = []
      let sliceStart = performance.now()
      for (const { ms, game, username, gamertag } of looksBetween(world, range)) {
        const common = { username, gamertag, periodSeconds: PRESENCE_STEP_MS / 1000, observedAt: instantOf(ms) }
        events.push(game === undefined ? { ...common, state: 'offline' } : { ...common, state: 'online', game })
        if (performance.now() - sliceStart > SLICE_MS) {
          await nextTurn()
          sliceStart = performance.now()
        }
      }
      await appendInPieces(append, presenceTopic, events, DEMO_HISTORY_SOURCE)
    }
  }
}

type Look = Pick<Stretch, 'username' | 'gamertag'> & { readonly ms: number; readonly game: string | undefined }

/**
 * Returns the sightings that a scrape at each step would have published: users online, each time; users who went
 * offline, once.
 */
function* looksBetween(world: World, { fromMs, toMs, stepMs }: Range): Generator<Look> {
  const stepFrom = (ms: number) => Math.ceil(ms / stepMs) * stepMs
  const stretches = stretchesBetween(world.seed, world.titles, world.users, fromMs - stepMs, toMs)
  for (const [index, { username, gamertag, title, ...stretch }] of stretches.entries()) {
    for (let ms = stepFrom(Math.max(fromMs, stretch.fromMs)); ms < Math.min(toMs, stretch.toMs); ms += stepMs) {
      yield { username, gamertag, ms, game: title.name }
    }
    const after = stretches[index + 1]
    const ms = stepFrom(stretch.toMs)
    const isBack = after?.username === username && after.fromMs <= ms
    if (!isBack && ms >= fromMs && ms < toMs) yield { username, gamertag, ms, game: undefined }
  }
}

function sampleParts(sample: readonly NetworkCounted[]): HistoryPart[] {
  return Array.from({ length: Math.ceil(sample.length / PART_EVENTS_MAX) }, (_, number) => {
    const events = sample.slice(number * PART_EVENTS_MAX, (number + 1) * PART_EVENTS_MAX)
    return {
      name: `network-count/sample/${events[0]?.observedAt}`,
      size: events.length,
      append: (append) => appendInPieces(append, networkCountTopic, events, SAMPLE_SOURCE)
    }
  })
}

async function appendInPieces<Event>(
  append: AppendHistory,
  topic: Topic<Event>,
  events: readonly Event[],
  source: string
): Promise<void> {
  for (let first = 0; first < events.length; first += APPEND_EVENTS_MAX) {
    await nextTurn()
    await append(topic, events.slice(first, first + APPEND_EVENTS_MAX), source)
  }
}

/** Cuts a span into ranges of at most `instantsMax` instants, oldest first. */
function ranges(fromMs: number, toMs: number, stepMs: number, instantsMax: number): Range[] {
  const cut: Range[] = []
  for (let start = fromMs; start < toMs; start += stepMs * instantsMax) {
    cut.push({ fromMs: start, toMs: Math.min(toMs, start + stepMs * instantsMax), stepMs })
  }
  return cut
}

function partName(noun: string, { fromMs, stepMs }: Range): string {
  return `${noun}/${stepMs === HOUR_MS ? 'hour' : 'minute'}/${instantOf(fromMs)}`
}

function instantsOf({ fromMs, toMs, stepMs }: Range): number {
  return Math.ceil((toMs - fromMs) / stepMs)
}

async function eachInstant({ fromMs, toMs, stepMs }: Range, visit: (ms: number) => void): Promise<void> {
  let sliceStart = performance.now()
  for (let ms = fromMs; ms < toMs; ms += stepMs) {
    visit(ms)
    if (performance.now() - sliceStart > SLICE_MS) {
      await nextTurn()
      sliceStart = performance.now()
    }
  }
}

function hourOfWeek(ms: number): number {
  return Math.floor(ms / HOUR_MS) % WEEK_HOURS
}

function floorTo(ms: number, stepMs: number): number {
  return Math.floor(ms / stepMs) * stepMs
}
