import { eventTables, makeRows, ownersOf, type Range, RowBuilder, runFold } from '@gamenet/projector/internals'
import { foldInline } from '@gamenet/projector/testing'
import {
  decodeEvent,
  generationName,
  type LeaderboardEntryChanged,
  leaderboardEntryTopic,
  loadCheckpoint,
  nameKey,
  projectionCheckpoint,
  type Topic
} from '@gamenet/schemas'
import { rowsOfErased } from './erasure.js'
import { undoneImports } from './log-events.js'
import type { Place } from './place.js'
import { LONGEST_ANSWER_MS } from './projector.js'
import { answerText, type Follower } from './reader.js'
import { servingProjections } from './rebuilding.js'
import { simulatedProjections } from './simulated.js'
import { storeAtOnce, Tables } from './store.js'
import { type Subscriber, streamUnlikeTables } from './subscriber.js'
import { TABLES } from './table-definitions.js'
import { laterTopics } from './tables/newer-program.js'
import type { Row } from './tables/replacing-table.js'
import { baseName } from './tables/table-set.js'

/** Returns every difference from the expected state when all work has ended. */
export async function faultsIn(place: Place, follower: Follower, subscriber: Subscriber): Promise<string[]> {
  const expected = await plainFold(place)
  // The descriptions of titles are not in the log.
  const names = Object.keys(TABLES).filter((name) => name !== 'event_title')
  const rowsIn = (tables: Tables, name: string) => answerText(tables.served(name))
  return [
    ...names.flatMap((name) => difference(name, rowsIn(place.tables, name), rowsIn(expected, name))),
    ...difference('dead_letter', deadLettersIn(place.tables), deadLettersIn(expected)),
    ...boardsUnlikePages(place),
    ...ratingsUnlikePostgres(place),
    ...rowsOfErased(place),
    ...lostEvents(place),
    ...eventsWithoutEffect(place),
    ...feedUnlikeTable(place, follower),
    ...streamUnlikeTables(place, subscriber)
  ]
}

/** Time until unused tables are dropped, while everything else is idle: a process looks again after the longest answer. */
export const DROPPED_MS = 3 * LONGEST_ANSWER_MS

/**
 * Returns leftover tables, which no pointer names: those of ended rebuilds (unless a skewed clock puts their end in the
 * future), and with a single process also those of no rebuild. Returns leftover checkpoints too.
 */
export function leftTables({ tables, isShared, world }: Place): string[] {
  const isDue = ({ state, changedAt }: RebuildRow) =>
    ENDED.has(state) && Date.parse(changedAt) + DROPPED_MS <= world.time.nowMs
  const rebuilds = rebuildsIn(tables)
  const { serving } = tables.pointers
  const left = tables.names.filter((name) => {
    const bare = baseName(name)
    if (bare === name || serving.nameOf(bare) === name) return false
    const owner =
      rebuilds.find((each) => each.tables.some((table) => table.name === name)) ??
      // Two attempts have the same number if the first one lost its lock.
      rebuilds.find(
        (each) =>
          (bare in each.helpers || each.tables.some((table) => table.bare === bare)) &&
          [generationName(bare, each.id), `${generationName(bare, each.id)}_live`].includes(name)
      )
    return owner === undefined ? !isShared : isDue(owner)
  })
  const progress = ['checkpoint', 'late_batch_taken'].flatMap((table) =>
    tables.final(table).map(({ name, taker = name }) => String(taker))
  )
  const orphans = new Set(
    progress.filter((reader) => {
      const [, topic, generation = 0] = /^load:([a-z-]+)(?:__(\d+))?$/.exec(reader) ?? []
      return topic !== undefined && !tables.has(`event_${topic.replaceAll('-', '_')}__${generation}`)
    })
  )
  return [
    ...(left.length === 0 ? [] : [`tables are left: ${left.join(', ')}`]),
    ...(orphans.size === 0 ? [] : [`checkpoints of dropped tables are left: ${[...orphans].join(', ')}`])
  ]
}

const ENDED: ReadonlySet<string> = new Set(['cancelled', 'dropped', 'rolled-back'])

type RebuildRow = {
  readonly id: number
  readonly state: string
  readonly changedAt: string
  readonly tables: readonly { readonly bare: string; readonly name: string }[]
  readonly helpers: Readonly<Record<string, string>>
}

type Waiting = { readonly tables: readonly string[]; readonly generation: number }

function rebuildsIn(tables: Tables): RebuildRow[] {
  return tables.final('rebuild').map((row) => {
    const record = JSON.parse(String(row.record)) as RebuildRow & { readonly waiting: readonly Waiting[] }
    const waiting = record.waiting.flatMap((each) =>
      each.tables.map((bare) => ({ bare, name: generationName(bare, each.generation) }))
    )
    return { ...record, tables: waiting }
  })
}

/** Whether all projections have consumed all events of the log, including late ones. */
export function isCaughtUp({ tables, log }: Place): boolean {
  const { pointers } = tables
  const { serving } = pointers
  if (pointers.all().some(({ writes, reads }) => writes !== reads)) return false
  const consumersOf = (topic: unknown) =>
    simulatedProjections
      .filter(({ from }) => from.name === topic)
      .map(({ name }) => serving.checkpointOf(projectionCheckpoint(name)))
  const isLateTaken = tables
    .final('late_batch')
    .every(({ id, topic }) =>
      consumersOf(topic).every((consumer) => tables.written('late_batch_taken').get(`${id}|${consumer}`) !== undefined)
    )
  if (!isLateTaken) return false
  return log.partitions.every(({ topic, partition, records }) => {
    const names = [serving.checkpointOf(loadCheckpoint(topic)), ...consumersOf(topic)]
    return names.every(
      (name) => Number(tables.written('checkpoint').get(`${name}|0|${partition}`)?.next ?? 0) >= records.length
    )
  })
}

/** Returns the expected tables: each event of the log projected once, in one step. */
async function plainFold({ log, postgres, tables: found, areLaterRead }: Place): Promise<Tables> {
  const tables = new Tables()
  const { pointers } = tables
  const store = storeAtOnce(tables, { names: pointers.names('writes', ownersOf(simulatedProjections)) })
  const retracted = undoneImports(log)
  const ranges = new Map<string, { epoch: number; partition: number; first: number; next: number }[]>()
  for (const { topic: name, partition, records } of log.partitions) {
    const table = eventTables.find(({ topic }) => topic.name === name)
    if (table === undefined || records.length === 0) continue
    const built = (topic: Topic) => {
      const builder = new RowBuilder({ ...table, topic })
      for (const record of records) builder.add(0, partition, record, (person) => postgres.sealKeyOf(person))
      return builder.take()
    }
    const now = built(table.topic)
    const later = areLaterRead ? laterTopics.find((topic) => topic.name === name) : undefined
    const { events } = later === undefined ? now : built(later)
    const first = generationName(table.table, 0)
    tables.insertBlock(first, events)
    tables.insertBlock('dead_letter', now.deadLetters)
    tables.written(first).delete(({ import_id }) => retracted.has(`${name}/${import_id}`))
    ranges.set(name, [...(ranges.get(name) ?? []), { epoch: 0, partition, first: 0, next: records.length }])
  }
  for (const projection of servingProjections(found)) {
    const range: Range = ranges.get(projection.from.name) ?? []
    if (range.length === 0) continue
    if (projection.form === 'fold') {
      const needs = { store, folding: foldInline(), signal: new AbortController().signal }
      await runFold(needs, projection, { range, isLate: false })
    } else await store.do(makeRows, projection, { range, isLate: false })
  }
  return tables
}

function deadLettersIn(tables: Tables): string {
  return answerText(
    tables.final('dead_letter').map(({ topic, partition, offset, value }) => ({ topic, partition, offset, value }))
  )
}

function difference(what: string, found: string, expected: string): string[] {
  if (found === expected) return []
  const [is, should] = [found.split('\n'), expected.split('\n')]
  const missing = should.filter((line) => !is.includes(line)).slice(0, 2)
  const wrong = is.filter((line) => !should.includes(line)).slice(0, 2)
  return [`${what}: missing ${missing.join(' and ') || 'nothing'}; unexpected ${wrong.join(' and ') || 'nothing'}`]
}

function boardsUnlikePages({ tables, upstream }: Place): string[] {
  return [...upstream.boards].flatMap(([titleId, boards]) =>
    boards.flatMap((board) => {
      const rows = tables
        .served('leaderboard_entry')
        .filter((row) => row.title_id === titleId && row.leaderboard_id === board.leaderboardId && row.is_gone !== true)
        .sort((a, b) => Number(a.place) - Number(b.place))
      const found = rows.map(({ rank, player, rating }) => `${rank} ${player} ${rating}`).join(', ')
      const page = upstream.entriesOf(board)
      const expected = page.map(({ rank, playerName, rating }) => `${rank} ${playerName} ${rating}`).join(', ')
      return found === expected
        ? []
        : [`board ${titleId}/${board.leaderboardId} is ${found}; its page shows ${expected}`]
    })
  )
}

function ratingsUnlikePostgres({ tables, postgres }: Place): string[] {
  const found = tables.served('rating').map(({ user_key, rater_key, stars, revision }) => ({
    user_key,
    rater_key,
    stars,
    revision
  }))
  const expected = [...postgres.ratings.values()].map(({ username, raterUsername, stars, revision }) => {
    return { user_key: nameKey(username), rater_key: nameKey(raterUsername), stars, revision }
  })
  return difference('ratings', answerText(found as Row[]), answerText(expected))
}

function lostEvents({ log, acknowledged }: Place): string[] {
  const there = new Set(log.partitions.flatMap(({ records }) => records.map(({ value }) => String(value))))
  const lost = [...acknowledged].filter((event) => !there.has(event))
  return lost.length === 0 ? [] : [`${lost.length} acknowledged events are not in the log, such as ${lost[0]}`]
}

/** Returns changes of entries that were published twice or have no effect. */
function eventsWithoutEffect({ log }: Place): string[] {
  const faults: string[] = []
  const states = new Map<string, string>()
  for (const { topic, partition, records } of log.partitions) {
    if (topic !== leaderboardEntryTopic.name) continue
    for (const record of records) {
      const decoded = decodeEvent<LeaderboardEntryChanged>(leaderboardEntryTopic, record)
      if (!decoded.ok) continue
      const { changedAt: _, changeType, ...state } = decoded.event
      const key = `${state.titleId}/${state.leaderboardId}/${state.playerName}#${state.occurrence ?? 1}`
      const before = states.get(key)
      const after = JSON.stringify(state)
      const isTwice = changeType === 'new' ? before !== undefined : before === undefined || before === after
      if (isTwice)
        faults.push(`published without effect at ${partition}/${record.offset}: ${changeType} ${after}, was ${before}`)
      if (changeType === 'removed') states.delete(key)
      else states.set(key, after)
    }
  }
  return faults.slice(0, 3)
}

function feedUnlikeTable({ tables }: Place, { seen }: Follower): string[] {
  const partitionId = ({ epoch, partition }: { epoch?: unknown; partition?: unknown }) => `${epoch}/${partition}`
  const placeOf = (row: Row) => [row.recorded_offset, row.epoch, row.partition, row.offset].map(Number)
  const expected = tables
    .served('leaderboard_feed')
    .filter((row) => row.is_change === true)
    .sort((a, b) => {
      const [first, second] = [placeOf(a), placeOf(b)]
      return first.reduce((order, value, n) => order || value - (second[n] ?? 0), 0)
    })
  return [...new Set(expected.map(partitionId))].flatMap((each) => {
    const published = seen
      .filter((change) => partitionId(change) === each)
      .map(({ offset, changeType }) => `${offset} ${changeType}`)
    const should = expected
      .filter((row) => partitionId(row) === each)
      .map(({ offset, change }) => `${offset} ${change}`)
    return published.join() === should.join()
      ? []
      : [`the feed of ${each} published ${published.join()}; the table has ${should.join()}`]
  })
}
