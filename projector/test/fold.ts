import {
  decodeEvent,
  type ImportAdvanced,
  millisecondsOf,
  type NetworkCounted,
  nameKey,
  type ScrapeRan,
  type TitleCounted,
  type TitleDescribed,
  topics
} from '@gamenet/schemas'
import type { Tables } from '../src/index.js'
import type { MemoryLog } from './memory-log.js'

/** One row of a read table: its key, whose change it is (`key`, at `ms`), and all its values as text. */
export type Row = { readonly id: string; readonly key: string; readonly ms: number; readonly values: string }

/** Every read table, by the projection that makes it, rows by id. */
export type ReadModel = ReadonlyMap<string, ReadonlyMap<string, Row>>

const HOUR = 3_600_000
const DAY = 24 * HOUR

type Placed<Event> = {
  readonly event: Event
  readonly isImported: boolean
  readonly ms: number
  readonly position: bigint
}
type Sample = { readonly ms: number; readonly value: number; readonly position: bigint }

/** The plain fold: what the read tables must hold after the events of the log, each at its place. */
export function foldOf(log: MemoryLog): ReadModel {
  const network = eventsOf<NetworkCounted>(log, 'network-count')
  const titleCounts = eventsOf<TitleCounted>(log, 'title-count')
  const samples = networkSamples(network)
  const hours = buckets(titleSamples(titleCounts), HOUR)
  return new Map([
    [
      'network-count',
      rowsOf(
        [...samples].flatMap(([metric, each]) => each.map((s) => row([metric, s.ms], '*', s.ms, [s.value, s.position])))
      )
    ],
    ['network-count-hour', networkHours(samples)],
    [
      'title-count',
      rowsOf([...newestBy(titleCounts, (e, ms) => `${e.titleId}/${ms}`, byPosition).values()].map(titleCountRow))
    ],
    [
      'title-count-hour',
      rowsOf(hours.map((b) => row([b.key, b.ms], b.key, b.ms, [b.min, b.max, b.maxAt, b.sum, b.samples, b.position])))
    ],
    ['title-count-day', titleDays(hours)],
    ['title-latest', titleLatestRows(titleCounts)],
    ['title', titleFields(eventsOf<TitleDescribed>(log, 'title'))],
    [
      'scrape',
      rowsOf(
        [...newestBy(eventsOf<ScrapeRan>(log, 'scrape'), (e, ms) => `${e.source}/${ms}`, byPosition).values()].map(
          scrapeRow
        )
      )
    ],
    [
      'import-run',
      rowsOf(
        [...newestBy(eventsOf<ImportAdvanced>(log, 'import-run'), (e) => e.importId, byPosition).values()].map(
          importRow
        )
      )
    ]
  ])
}

/** The messages of the log that are no events, as `topic/epoch/partition/offset`. */
export function unreadable(log: MemoryLog): string[] {
  return log.partitions
    .flatMap(({ topic: name, epoch, partition, records }) => {
      const topic = topics.find((each) => each.name === name)
      return records
        .filter((record) => topic !== undefined && !decodeEvent(topic, record).ok)
        .map(({ offset }) => `${name}/${epoch}/${partition}/${offset}`)
    })
    .sort()
}

const READ: Readonly<Record<string, { id: string; key: string; ms: string; values: string }>> = {
  'network-count': { id: 'metric, ms(ts)', key: "'*'", ms: 'ts', values: 'value, position' },
  'network-count-hour': {
    id: 'metric, ms(hour)',
    key: "'*'",
    ms: 'hour',
    values: 'min, max, ms(max_at), sum, samples, last, ms(last_at), position'
  },
  'title-count': {
    id: 'title_id, ms(ts)',
    key: 'title_id',
    ms: 'ts',
    values: 'online, sessions, lobby_players, position'
  },
  'title-count-hour': {
    id: 'title_id, ms(hour)',
    key: 'title_id',
    ms: 'hour',
    values: 'min, max, ms(max_at), sum, samples, position'
  },
  'title-count-day': {
    id: 'title_id, ms(day)',
    key: 'title_id',
    ms: 'day',
    values: 'min, max, ms(max_at), sum, samples, active_hours, position'
  },
  'title-latest': {
    id: 'imported, title_id',
    key: 'title_id',
    ms: 'ts',
    values: 'ms(ts), online, sessions, lobby_players, version'
  },
  title: {
    id: 'title_id, field',
    key: 'title_id',
    ms: 'fromUnixTimestamp64Milli(toInt64(bitShiftRight(version, 64)))',
    values: 'value, name_key, version'
  },
  scrape: {
    id: 'source, ms(ts)',
    key: 'source',
    ms: 'ts',
    values: 'duration_ms, outcome, published, reason, position'
  },
  'import-run': {
    id: 'import_id',
    key: 'import_id',
    ms: 'ts',
    values: 'ms(ts), topic, file, rows_read, published, rejected, finished, position'
  }
}

/** What the read tables hold. */
export async function readModel(tables: Tables): Promise<ReadModel> {
  const model = new Map<string, ReadonlyMap<string, Row>>()
  for (const [projection, { id, key, ms, values }] of Object.entries(READ)) {
    const table = projection.replaceAll('-', '_')
    const rows = await tables.rows(
      `SELECT concat_ws('|', ${textOf(id)}) AS id, ${key} AS key, ${textOf(`ms(${ms})`)} AS ms,
         concat_ws('|', ${textOf(values)}) AS row_values
       FROM ${table} FINAL`
    )
    model.set(
      projection,
      rowsOf(
        rows.map((each) => ({
          id: String(each.id),
          key: String(each.key),
          ms: Number(each.ms),
          values: String(each.row_values)
        }))
      )
    )
  }
  return model
}

/** `a, ms(b)` as SQL that gives texts: instants in ms, no value as `-`. */
function textOf(list: string): string {
  if (list.startsWith('ms(') && list.includes('(', 3)) return textOfMs(list.slice(3, -1))
  return list
    .split(', ')
    .map((each) => (each.startsWith('ms(') ? textOfMs(each.slice(3, -1)) : `ifNull(toString(${each}), '-')`))
    .join(', ')
}

function textOfMs(expression: string): string {
  return `toString(toUnixTimestamp64Milli(toDateTime64(${expression}, 3, 'UTC')))`
}

function eventsOf<Event>(log: MemoryLog, name: string): Placed<Event>[] {
  const topic = topics.find((each) => each.name === name)
  if (topic === undefined) throw new Error(`no topic ${name}`)
  const events: Placed<Event>[] = []
  for (const { topic: of, epoch, records } of log.partitions) {
    if (of !== name) continue
    for (const record of records) {
      const decoded = decodeEvent(topic, record)
      if (!decoded.ok) continue
      const position = (BigInt(epoch) << 48n) | BigInt(record.offset)
      const ms = millisecondsOf(topic.instant(decoded.event))
      events.push({ event: decoded.event as Event, isImported: decoded.importId !== '', ms, position })
    }
  }
  return events
}

const byPosition = (placed: Placed<unknown>) => placed.position
const byInstant = (placed: Placed<unknown>) => (BigInt(placed.ms) << 64n) | placed.position

function newestBy<Event>(
  events: readonly Placed<Event>[],
  keyOf: (event: Event, ms: number) => string,
  versionOf: (placed: Placed<unknown>) => bigint
): Map<string, Placed<Event>> {
  const newest = new Map<string, Placed<Event>>()
  for (const placed of events) {
    const key = keyOf(placed.event, placed.ms)
    const before = newest.get(key)
    if (before === undefined || versionOf(placed) >= versionOf(before)) newest.set(key, placed)
  }
  return newest
}

function networkSamples(events: readonly Placed<NetworkCounted>[]): Map<string, Sample[]> {
  const samples = new Map<string, Sample[]>()
  for (const metric of ['registered', 'online', 'lobbies'] as const) {
    const having = events.filter(({ event }) => event[metric] !== undefined)
    const newest = newestBy(having, (_, ms) => String(ms), byPosition)
    samples.set(
      metric,
      [...newest.values()].map(({ event, ms, position }) => ({ ms, value: event[metric] ?? 0, position }))
    )
  }
  return samples
}

function titleSamples(events: readonly Placed<TitleCounted>[]): Map<string, Sample[]> {
  const samples = new Map<string, Sample[]>()
  for (const { event, ms, position } of newestBy(events, (e, ms) => `${e.titleId}/${ms}`, byPosition).values()) {
    const of = samples.get(event.titleId) ?? []
    of.push({ ms, value: event.online, position })
    samples.set(event.titleId, of)
  }
  return samples
}

function buckets(samples: ReadonlyMap<string, readonly Sample[]>, width: number) {
  return [...samples].flatMap(([key, all]) => {
    const starts = new Set(all.map(({ ms }) => ms - (ms % width)))
    return [...starts].map((start) => {
      const of = all.filter(({ ms }) => ms - (ms % width) === start).sort((a, b) => a.ms - b.ms)
      const max = Math.max(...of.map(({ value }) => value))
      const last = of.at(-1)
      return {
        key,
        ms: start,
        min: Math.min(...of.map(({ value }) => value)),
        max,
        maxAt: of.find(({ value }) => value === max)?.ms ?? Number.NaN,
        sum: of.reduce((sum, { value }) => sum + value, 0),
        samples: of.length,
        last: last?.value,
        lastAt: last?.ms,
        position: highest(of)
      }
    })
  })
}

function highest(of: readonly { readonly position: bigint }[]): bigint {
  let most = 0n
  for (const { position } of of) if (position > most) most = position
  return most
}

function networkHours(samples: ReadonlyMap<string, readonly Sample[]>) {
  return rowsOf(
    buckets(samples, HOUR).map((b) =>
      row([b.key, b.ms], '*', b.ms, [b.min, b.max, b.maxAt, b.sum, b.samples, b.last, b.lastAt, b.position])
    )
  )
}

function titleDays(hours: ReturnType<typeof buckets>) {
  const days = new Map<string, ReturnType<typeof buckets>>()
  for (const hour of hours) {
    const id = `${hour.key}|${hour.ms - (hour.ms % DAY)}`
    days.set(id, [...(days.get(id) ?? []), hour])
  }
  return rowsOf(
    [...days].map(([id, of]) => {
      const max = Math.max(...of.map((hour) => hour.max))
      const [key = '', ms] = id.split('|')
      return row([id], key, Number(ms), [
        Math.min(...of.map((hour) => hour.min)),
        max,
        Math.min(...of.filter((hour) => hour.max === max).map((hour) => hour.maxAt)),
        of.reduce((sum, hour) => sum + hour.sum, 0),
        of.reduce((sum, hour) => sum + hour.samples, 0),
        of.filter((hour) => hour.max > 0).length,
        highest(of)
      ])
    })
  )
}

function titleCountRow({ event: e, ms, position }: Placed<TitleCounted>): Row {
  return row([e.titleId, ms], e.titleId, ms, [e.online, e.sessions, e.lobbyPlayers, position])
}

function titleLatestRows(events: readonly Placed<TitleCounted>[]) {
  return rowsOf(
    [true, false].flatMap((isImported) => {
      const of = events.filter((placed) => placed.isImported === isImported)
      return [...newestBy(of, (e) => e.titleId, byInstant).values()].map((placed) => {
        const { event: e, ms } = placed
        const values = [ms, e.online, e.sessions, e.lobbyPlayers, byInstant(placed)]
        return row([isImported, e.titleId], e.titleId, ms, values)
      })
    })
  )
}

function titleFields(events: readonly Placed<TitleDescribed>[]) {
  const fields: Record<string, (event: TitleDescribed) => string | undefined> = {
    name: (e) => e.name,
    title: (e) => e.title,
    publisher: (e) => e.publisher,
    release_date: (e) => e.releaseDate,
    image: (e) => e.image,
    product_code: (e) => e.productCode,
    features: (e) => e.features?.join(',')
  }
  return rowsOf(
    Object.entries(fields).flatMap(([field, textOfField]) => {
      const having = events.filter(({ event }) => textOfField(event) !== undefined)
      return [...newestBy(having, (e) => e.titleId, byInstant).values()].map((placed) => {
        const key = field === 'name' ? nameKey(placed.event.name) : ''
        const values = [textOfField(placed.event), key, byInstant(placed)]
        return row([placed.event.titleId, field], placed.event.titleId, placed.ms, values)
      })
    })
  )
}

function scrapeRow({ event: e, ms, position }: Placed<ScrapeRan>): Row {
  return row([e.source, ms], e.source, ms, [e.durationMs, e.outcome, e.published, e.reason ?? '', position])
}

function importRow({ event: e, ms, position }: Placed<ImportAdvanced>): Row {
  const values = [ms, e.topic, e.file, e.rowsRead, e.published, e.rejected, e.finished, position]
  return row([e.importId], e.importId, ms, values)
}

function row(id: readonly unknown[], key: string, ms: number, values: readonly unknown[]): Row {
  return { id: id.join('|'), key, ms, values: values.map((value) => value ?? '-').join('|') }
}

function rowsOf(rows: readonly Row[]): ReadonlyMap<string, Row> {
  return new Map(rows.map((each) => [each.id, each]))
}
