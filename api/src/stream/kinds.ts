import {
  achievementById,
  boardKey,
  importRetractionTopic,
  leaderboardEntryTopic,
  matchListTopic,
  nameKey,
  networkCountTopic,
  newUnlock,
  STREAM_KINDS,
  type StreamKind,
  shownInstant,
  titleCountTopic,
  veiled
} from '@gamenet/schemas'
import type { z } from 'zod'
import type { AnswerContext } from '../answers/endpoint.js'
import { type ChangeRow, recordedChanges } from '../queries/leaderboard-change.js'
import { type Query, rowsOf } from '../queries/query.js'
import { recordsOfBoards } from '../queries/record-history.js'
import {
  type RangeParams,
  recordedCounts,
  recordedLists,
  recordedRetractions,
  recordedTitleCounts,
  recordedUnlocks,
  recordingEvents,
  type Source
} from '../queries/stream.js'
import { changesOf } from '../routes/leaderboard-change.js'
import { measureShown } from '../routes/shown-measure.js'
import { type PartitionId, type Place, partsOf } from './cursor.js'

/** Kinds with a cursor. A stream of any of them also reports undone imports. */
export type RecordedKind = Exclude<StreamKind, 'live-counts'> | 'retracted'

/** The normalized filter of a stream; null means all. */
export type StreamFilter = {
  /** Null means all recorded kinds that the other parts fit, including those of later versions. */
  readonly kinds: readonly StreamKind[] | null
  readonly titleId: string | null
  readonly leaderboardId: number | null
  readonly playerKey: string | null
  /** True: only contested records. */
  readonly contested?: true | undefined
}

/** An event, serialized once, without its cursor. */
export type StreamEvent = {
  readonly kind: RecordedKind
  readonly partitionId: PartitionId
  /** The place after it. */
  readonly next: Place
  readonly titleId?: string | undefined
  readonly leaderboardId?: number
  readonly playerKey?: string
  readonly isContested?: boolean
  /** Of an undone import: the topic of its events. */
  readonly topic?: string
  /** JSON without the outer braces. */
  readonly body: string
}

export type ReadContext = Pick<AnswerContext, 'tables' | 'positions' | 'catalog' | 'boards' | 'signal'>
type Range = {
  readonly partitionId: PartitionId
  readonly place: Place
  readonly endOffset: number
  readonly limit: number
}
/** The rows of a page; `toEvents` adds names. */
type Rows = {
  readonly count: number
  toEvents(context: ReadContext): Promise<StreamEvent[]>
  readonly last: Place | undefined
}

type KindReader = {
  readonly source: Source
  /** The topics whose undone imports concern this kind. */
  readonly topics: readonly string[]
  /** The parts of a filter that fit the kind. */
  readonly filters: readonly Exclude<keyof StreamFilter, 'kinds'>[]
  read(range: Range, filter: StreamFilter | undefined, context: ReadContext): Promise<Rows>
}

/** Source and form of the events of each kind. */
const kindReaders: Readonly<Record<RecordedKind, KindReader>> = {
  count: eventKind('count', [networkCountTopic.name], [], recordedCounts, (row) => ({
    data: {
      recorded_at: recordedAt(row.atMs),
      registered_count: row.registered,
      online_count: row.online,
      lobby_count: row.lobbies
    }
  })),
  'title-count': eventKind(
    'title-count',
    [titleCountTopic.name],
    ['titleId'],
    recordedTitleCounts,
    ({ titleId, atMs, online, sessions, lobbyPlayers }, { nameOf }) => ({
      titleId,
      data: {
        titleId,
        gameName: nameOf(titleId),
        recorded_at: recordedAt(atMs),
        online_count: online,
        activeLobbies: sessions ?? 0,
        activeLobbyPlayers: lobbyPlayers ?? 0
      }
    })
  ),
  match: eventKind('match', [matchListTopic.name], ['titleId'], recordedLists, (row, { nameOf }) => ({
    titleId: row.titleId,
    data: {
      titleId: row.titleId,
      gameName: nameOf(row.titleId),
      matches: row.hosts.map((hostName, n) => ({
        hostName,
        currentPlayers: row.players[n] ?? 0,
        maxPlayers: row.maxPlayers[n] ?? 0,
        timestamp: recordedAt(row.atMs)
      }))
    }
  })),
  achievement: eventKind('achievement', [], ['titleId', 'playerKey'], recordedUnlocks, (row) => {
    const shown = newUnlock({ ...row, unlockedMs: row.atMs })
    if (shown === undefined) return undefined
    return {
      titleId: titleOfAchievement(row.achievementId),
      playerKey: row.userKey,
      data: { username: row.username, ...shown }
    }
  }),
  change: {
    source: 'change',
    topics: [leaderboardEntryTopic.name],
    filters: ['titleId', 'leaderboardId', 'playerKey'],
    read: async (range, filter, context) => {
      const rows = await readChanges(range, filter, context)
      const known = await knownOfChanges(range.partitionId, rows, context)
      const toEvents = async (context: ReadContext) => {
        const shown = await changesOf(rows, context)
        return rows.map((row, n) => eventOfChange('change', range.partitionId, row, known, shown[n]))
      }
      return { count: rows.length, last: lastOf(rows), toEvents }
    }
  },
  record: {
    source: 'change',
    topics: [leaderboardEntryTopic.name],
    filters: ['titleId', 'leaderboardId', 'playerKey', 'contested'],
    read: async (range, filter, context) => {
      const rows = await readChanges(range, filter, context)
      const reigns = await reignsOf(rows, context)
      const records = rows.flatMap((row) => {
        const reign = reigns.get(reignKey(row, row.playerName, row.atMs, row.newRating ?? ''))
        const isWanted = reign !== undefined && (reign.hasPrevious || filter?.contested !== true)
        return isWanted ? [{ row, reign }] : []
      })
      const known = await knownOfChanges(
        range.partitionId,
        records.map(({ row }) => row),
        context
      )
      const toEvents = async ({ catalog, boards }: ReadContext) => {
        const [titles, names] = await Promise.all([catalog(), boards()])
        return records.map(({ row, reign }) => ({
          isContested: reign.hasPrevious,
          ...eventOfChange('record', range.partitionId, row, known, {
            titleId: row.titleId,
            gameName: titles.named(row.titleId).shownName,
            leaderboardId: row.leaderboardId,
            leaderboardName: names.nameOf(row),
            playerName: row.playerName,
            ...measureShown({ rating: row.newRating ?? '', timeMs: row.newTimeMs }),
            setAt: shownInstant(row.atMs),
            previousPlayerName: reign.hasPrevious ? reign.previousPlayer : null,
            previousRating: reign.hasPrevious ? reign.previousRating : null,
            previousTimeMs: reign.hasPrevious ? reign.previousTimeMs : null,
            isContested: reign.hasPrevious,
            isCurrent: reign.isCurrent
          })
        }))
      }
      return { count: rows.length, last: lastOf(rows), toEvents }
    }
  },
  retracted: eventKind(
    'retracted',
    [importRetractionTopic.name],
    ['titleId', 'leaderboardId', 'playerKey'],
    recordedRetractions,
    (row) => ({
      topic: row.topic,
      data: { importId: row.retractedImportId, kinds: kindsOfTopic(row.topic), retractedAt: shownInstant(row.atMs) }
    })
  )
}

/** Returns the reader of a kind whose events are those of one event table. */
function eventKind<Row extends { offset: number; atMs: number; knownMs: number }>(
  kind: RecordedKind & Source,
  topics: KindReader['topics'],
  filters: KindReader['filters'],
  question: Query<RangeParams, Row>,
  show: (row: Row, names: { nameOf(titleId: string): string }) => Shown | undefined
): KindReader {
  const read: KindReader['read'] = (range, filter, context) => readEvents(kind, question, range, filter, context, show)
  return { source: kind, topics, filters, read }
}

/** Offsets of the first range: a granule of the tables, which fills the largest page if every event passes. */
const SPAN = 8192
/** Growth of the range after one in which too few events passed. */
const WIDER = 16

/** The rows of a page, and the place up to which the partition was read. */
export type Page = { readonly next: Place; toEvents(context: ReadContext): Promise<StreamEvent[]> }

/** Reads at most `limit` rows of one partition, from a place up to an offset. */
export async function readPage(
  kind: RecordedKind,
  { partitionId, place, endOffset, limit }: Range,
  filter: StreamFilter | undefined,
  context: ReadContext
): Promise<Page> {
  const { read } = kindReaders[kind]
  let from = place
  for (let span = SPAN; ; span *= WIDER) {
    const seen = Math.min(endOffset, (from[0] ?? 0) + span)
    const { count, last, toEvents } = await read({ partitionId, place: from, endOffset: seen, limit }, filter, context)
    const isFull = count >= limit && last !== undefined
    if (isFull || count > 0 || seen >= endOffset) return { next: isFull ? last : [seen], toEvents }
    from = [seen]
  }
}

/** The source of a kind. */
export const sourceOf = (kind: RecordedKind): Source => kindReaders[kind].source

const FILTERS = ['titleId', 'leaderboardId', 'playerKey', 'contested'] as const

/** Whether all given parts of a filter fit a kind. */
export function fits(kind: StreamKind, filter: Omit<StreamFilter, 'kinds'>): boolean {
  const known = kind === 'live-counts' ? [] : kindReaders[kind].filters
  return FILTERS.every((name) => (filter[name] ?? null) === null || known.includes(name))
}

/** The recorded kinds of a filter, in the order of its cursors. `retracted` is last, after the events of its import. */
export function recordedKinds(filter: StreamFilter): RecordedKind[] {
  const recorded = kindsOf(filter).filter((kind) => kind !== 'live-counts')
  return recorded.length === 0 ? [] : [...recorded, 'retracted']
}

function kindsOf(filter: StreamFilter): readonly StreamKind[] {
  return filter.kinds ?? STREAM_KINDS.filter((kind) => kind !== 'live-counts' && fits(kind, filter))
}

/** Whether a filter lets an event pass. */
export function passes(event: StreamEvent, filter: StreamFilter): boolean {
  if (event.kind === 'retracted') return kindsOf(filter).some((kind) => topicsOf(kind).includes(event.topic ?? ''))
  const { titleId, leaderboardId, playerKey, contested } = filter
  return (
    (contested !== true || event.isContested === true) &&
    (titleId === null || event.titleId === titleId) &&
    (leaderboardId === null || event.leaderboardId === leaderboardId) &&
    (playerKey === null || event.playerKey === playerKey)
  )
}

const topicsOf = (kind: StreamKind): readonly string[] => (kind === 'live-counts' ? [] : kindReaders[kind].topics)

const kindsOfTopic = (topic: string): StreamKind[] => STREAM_KINDS.filter((kind) => topicsOf(kind).includes(topic))

function titleOfAchievement(id: number): string | undefined {
  const achievement = achievementById.get(id)
  return achievement === undefined ? undefined : (veiled(achievement).game_title_id ?? undefined)
}

type Shown = {
  readonly titleId?: string | undefined
  readonly playerKey?: string
  readonly topic?: string
  readonly data: unknown
}

/** Reads a page of an event table. */
async function readEvents<Row extends { offset: number; atMs: number; knownMs: number }>(
  kind: RecordedKind,
  question: Query<RangeParams, Row>,
  { partitionId, place, endOffset, limit }: Range,
  filter: StreamFilter | undefined,
  context: ReadContext,
  show: (row: Row, names: { nameOf(titleId: string): string }) => Shown | undefined
): Promise<Rows> {
  const { epoch: recordedEpoch, partition: recordedPartition } = partsOf(partitionId)
  const titleId = filter?.titleId ?? null
  const achievementIds =
    titleId === null ? [] : [...achievementById.keys()].filter((id) => titleOfAchievement(id) === titleId)
  const topics = [...new Set((filter === undefined ? STREAM_KINDS : kindsOf(filter)).flatMap(topicsOf))]
  const params: RangeParams = {
    recordedEpoch,
    recordedPartition,
    firstOffset: place[0] ?? 0,
    endOffset,
    limit,
    titleId,
    playerKey: filter?.playerKey ?? null,
    achievementIds,
    topics
  }
  const rows = await rowsOf(context.tables, question, params, { signal: context.signal })
  const toEvents = async ({ catalog }: ReadContext) => {
    const titles = await catalog()
    const names = { nameOf: (titleId: string) => titles.named(titleId).shownName }
    return rows.flatMap((row, n): StreamEvent[] => {
      // A row stored twice and not merged yet.
      if (row.offset === rows[n - 1]?.offset) return []
      const shown = show(row, names)
      if (shown === undefined) return []
      const { data, ...facts } = shown
      const body = bodyOf(kind, row.atMs, row.knownMs, data)
      return [{ kind, partitionId, next: [row.offset + 1], ...facts, body }]
    })
  }
  const last = rows.at(-1)
  return { count: rows.length, toEvents, last: last === undefined ? undefined : [last.offset + 1] }
}

async function readChanges(
  { partitionId, place, endOffset, limit }: Range,
  filter: StreamFilter | undefined,
  { tables, signal }: ReadContext
): Promise<ChangeRow[]> {
  const { epoch: recordedEpoch, partition: recordedPartition } = partsOf(partitionId)
  const [recordedOffset = 0, epoch = 0, partition = 0, offset = 0] = place
  const { titleId = null, leaderboardId = null, playerKey = null } = filter ?? {}
  const condition = { titleId, leaderboardId, playerKey, changeType: null, sinceMs: null, untilMs: null }
  const from = { recordedOffset, epoch, partition, offset }
  const params = { ...condition, ...from, recordedEpoch, recordedPartition, endOffset, limit }
  return await rowsOf(tables, recordedChanges(condition), params, { signal })
}

function eventOfChange(
  kind: 'change' | 'record',
  partitionId: PartitionId,
  row: ChangeRow,
  known: ReadonlyMap<number, number>,
  data: unknown
): StreamEvent {
  const { titleId, leaderboardId, playerName, atMs, recordedOffset } = row
  const body = bodyOf(kind, atMs, known.get(recordedOffset) ?? atMs, data)
  return { kind, partitionId, next: placeBehind(row), titleId, leaderboardId, playerKey: nameKey(playerName), body }
}

function placeBehind({ recordedOffset, epoch, partition, offset }: ChangeRow): Place {
  return [recordedOffset, epoch, partition, offset + 1]
}

function lastOf(rows: readonly ChangeRow[]): Place | undefined {
  const last = rows.at(-1)
  return last === undefined ? undefined : placeBehind(last)
}

/** Returns when the log took the events that recorded these changes, by offset. */
async function knownOfChanges(
  partitionId: PartitionId,
  rows: readonly ChangeRow[],
  { tables, signal }: ReadContext
): Promise<ReadonlyMap<number, number>> {
  if (rows.length === 0) return new Map()
  const { epoch, partition } = partsOf(partitionId)
  const offsets = [...new Set(rows.map(({ recordedOffset }) => recordedOffset))]
  const events = await rowsOf(tables, recordingEvents, { epoch, partition, offsets }, { signal })
  return new Map(events.map(({ offset, knownMs }) => [offset, knownMs]))
}

type Reign = z.infer<(typeof recordsOfBoards)['row']>

async function reignsOf(
  rows: readonly ChangeRow[],
  { tables, signal }: ReadContext
): Promise<ReadonlyMap<string, Reign>> {
  const boards = [...new Map(rows.map((row) => [boardKey(row), row])).values()]
  if (boards.length === 0) return new Map()
  const params = {
    titleIds: boards.map(({ titleId }) => titleId),
    leaderboardIds: boards.map(({ leaderboardId }) => leaderboardId)
  }
  const reigns = await rowsOf(tables, recordsOfBoards, params, { signal })
  return new Map(reigns.map((reign) => [reignKey(reign, reign.player, reign.setMs, reign.rating), reign]))
}

function reignKey(
  { titleId, leaderboardId }: { readonly titleId: string; readonly leaderboardId: number },
  player: string,
  setMs: number,
  rating: string
): string {
  return JSON.stringify([titleId, leaderboardId, player, setMs, rating])
}

function bodyOf(kind: RecordedKind, atMs: number, knownMs: number, data: unknown): string {
  const instants = `"happenedAt":"${happened.text(atMs)}","knownAt":"${known.text(knownMs)}"`
  return `"kind":"${kind}",${instants},"data":${JSON.stringify(data)}`
}

/** Returns an instant as series have it: to the second, without a zone. */
const recordedAt = (ms: number): string => happened.text(ms).slice(0, 19).replace('T', ' ')

/** Caches the text of the last instant: the titles of one list, and the events of an import, share one. */
class InstantText {
  #ms = Number.NaN
  #text = ''

  text(ms: number): string {
    if (ms !== this.#ms) this.#text = shownInstant(ms)
    this.#ms = ms
    return this.#text
  }
}

const happened = new InstantText()
const known = new InstantText()
