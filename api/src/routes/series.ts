import type { Parameters as QueryParameters } from '@gamenet/schemas'
import type { AnswerContext, Dependency, Endpoint } from '../answers/endpoint.js'
import { listOf } from '../answers/table.js'
import { bind, jsonOf, type Query, rowsOf } from '../queries/query.js'
import {
  bucketsTouched,
  cutAtHours,
  type DayCut,
  type HourCut,
  POINTS_MAX,
  seriesWidth,
  tooManyPoints,
  uncut
} from '../queries/series.js'
import { instant, KNOWN_AT, knownAt, resolution, zoneOfDays } from '../request/parameters.js'
import { type WindowInput, window } from '../request/window.js'
import { requirePast } from './known-game.js'

/** A requested series: an absolute window and the width of its buckets, 0 for samples. */
export type SeriesRequest = {
  readonly fromMs: number
  readonly toMs: number
  readonly widthSeconds: number
  readonly knownAtMs?: number
}

type Bounds = { readonly from: number; readonly to: number }
/** What was known at an instant, computed from events from one hour to another. */
type Known = { readonly knownAt?: number; readonly knownFrom?: number; readonly knownTo?: number }

/** The queries of a series of one metric or title; in JSON, more than {@link POINTS_MAX} samples are none. */
type InstantQueries<Key extends QueryParameters> = {
  readonly samples: Query<Key & Bounds & Known, unknown>
  readonly buckets: Query<Key & HourCut & Known & { width: number }, unknown>
}

/** With instants as JSON shows them, and typed, for files. */
type SeriesQueries<Key extends QueryParameters> = {
  readonly shown: InstantQueries<Key>
  readonly typed: InstantQueries<Key>
  /** Counts the points with buckets of `widthMs`, up to one above the limit. */
  readonly points: Query<Key & Bounds & Known & { widthMs: number }, { points: number }>
}

/** A kind of series: where its points are and what they are called. */
type SeriesKind<Key extends QueryParameters, Series> = {
  /** As known now, and at an instant. */
  readonly queries: SeriesQueries<Key> & {
    readonly known: SeriesQueries<Key> & {
      /** Selects the first and the last instant that the tables do not have as they were known. */
      readonly changed: Query<Key & Bounds & { knownAt: number }, { firstMs: number | null; lastMs: number | null }>
    }
  }
  /** The column of the count. */
  readonly count: string
  readonly response: Parameters<typeof listOf>[0]
  keyOf(series: Series): Key
}

const HOUR_MS = 3_600_000
const RESOLUTION_HEADER = 'X-Resolution-Seconds'

/** The parameters `from` and `to` of all windows of history. */
export const windowParameters = {
  from: instant().optional().describe('Start of the window, included. Without `to` the window ends now.'),
  to: instant({ example: '2026-03-15T20:00:00Z' })
    .optional()
    .describe('End of the window, not included; needs `from`.'),
  tz: zoneOfDays
}

/** The parameters of every series besides its length. */
export const seriesParameters = {
  ...windowParameters,
  knownAt,
  resolution: resolution()
    .optional()
    .describe(
      '`raw` for samples, or the width of a bucket in seconds. Without it: samples up to 24 hours, else the finest ' +
        'of 300, 900, 3600, 21600, 86400, 604800 with at most 2,000 buckets in the window.'
    )
}

/** The fields of every series' answer. */
export const seriesDescription =
  'Oldest first. A bucket has its peak at its start, a multiple of the width since 1970, UTC (a week begins on ' +
  'Monday), and the minimum, mean and number of its samples; only samples inside the window count. A missing sample ' +
  'is absent, never 0. A window that ends now has its start floored to the minute. More than 1,000,000 points are ' +
  'refused in JSON; files may have any number.'

/** Returns the series of an input. */
export function seriesRequest(
  input: WindowInput & { readonly resolution?: 'raw' | number | undefined; readonly knownAt?: number | undefined },
  otherwise: { days: number } | { hours: number },
  nowMs: number
): SeriesRequest {
  const { fromMs, toMs, spanMs } = window(input, otherwise, nowMs)
  const series = { fromMs, toMs, widthSeconds: seriesWidth({ fromMs, toMs }, spanMs, input.resolution) }
  if (input.knownAt === undefined) return series
  requirePast(KNOWN_AT, input.knownAt, nowMs)
  return { ...series, knownAtMs: input.knownAt }
}

/** Returns the answer of a series in JSON, of any length in files, and the header with the used width. */
export function seriesAnswer<Key extends QueryParameters, Series extends SeriesRequest>(
  kind: SeriesKind<Key, Series>
): Pick<
  Endpoint<never, Series>,
  'headers' | 'responseHeaders' | 'answer' | 'table' | 'response' | 'isTaggedByContent'
> {
  const { keyOf, response, count } = kind
  return {
    isTaggedByContent: ({ knownAtMs }) => knownAtMs !== undefined,
    headers: ({ widthSeconds }) => ({ [RESOLUTION_HEADER]: String(widthSeconds) }),
    responseHeaders: { [RESOLUTION_HEADER]: 'Width of the buckets in seconds, 0 for samples.' },
    answer: async (series, context) => ({ body: await seriesBody(series, kind, context) }),
    table: {
      ...listOf(response),
      // Samples have no statistics.
      columns: ({ widthSeconds }) => (widthSeconds > 0 ? undefined : ['recorded_at', count]),
      select: (series) => {
        const { asked, known } = knownFrom(kind, series)
        const key = { ...keyOf(series), ...known }
        return series.widthSeconds > 0
          ? bind(asked.typed.buckets, { ...key, ...bucketsOf(series) })
          : bind(asked.typed.samples, { ...key, ...boundsOf(series) })
      }
    },
    response
  }
}

/** Returns the dependencies of a series on the projections `<noun>` and `<noun>-hour`. */
export function seriesReads(noun: string, series: SeriesRequest, key?: string): Dependency[] {
  const reads = readsOf(noun, cutOf(series), key)
  return series.knownAtMs === undefined ? reads : [...reads, { projection: 'import-retraction' }]
}

/** Returns a series with the hours that are computed from events: all, or those from a first to a last instant. */
function knownFrom<Key extends QueryParameters, Series extends SeriesRequest>(
  { queries }: SeriesKind<Key, Series>,
  { knownAtMs: knownAt, fromMs, toMs }: SeriesRequest,
  firstMs: number | null = fromMs,
  lastMs: number | null = toMs
): { readonly asked: SeriesQueries<Key>; readonly known: Known } {
  if (knownAt === undefined || firstMs === null || lastMs === null) return { asked: queries, known: {} }
  const hour = (ms: number) => Math.floor(ms / HOUR_MS) * HOUR_MS
  return { asked: queries.known, known: { knownAt, knownFrom: hour(firstMs), knownTo: hour(lastMs) + HOUR_MS } }
}

/**
 * Returns the JSON bytes of a series. Samples take one query; only an empty result needs a second one, to distinguish
 * none from too many. Buckets are counted first if there could be too many of them.
 */
async function seriesBody<Key extends QueryParameters, Series extends SeriesRequest>(
  series: Series,
  kind: SeriesKind<Key, Series>,
  { tables, signal }: AnswerContext
): Promise<Uint8Array> {
  const { knownAtMs: knownAt } = series
  const changed = { ...kind.keyOf(series), ...boundsOf(series) }
  const [span] =
    knownAt === undefined ? [] : await rowsOf(tables, kind.queries.known.changed, { ...changed, knownAt }, { signal })
  const { asked, known } = knownFrom(kind, series, span?.firstMs, span?.lastMs)
  const { shown, points } = asked
  const key = { ...kind.keyOf(series), ...known }
  const refuseAbove = async (widthMs: number): Promise<void> => {
    const [row] = await rowsOf(tables, points, { ...key, ...boundsOf(series), widthMs }, { signal })
    if ((row?.points ?? 0) > POINTS_MAX) throw tooManyPoints(series, series.widthSeconds)
  }
  if (series.widthSeconds === 0) {
    const body = await jsonOf(tables, shown.samples, { ...key, ...boundsOf(series) }, { signal })
    if (isEmptyArray(body)) await refuseAbove(1)
    return body
  }
  if (bucketsTouched(series, series.widthSeconds) > POINTS_MAX) await refuseAbove(series.widthSeconds * 1000)
  return await jsonOf(tables, shown.buckets, { ...key, ...bucketsOf(series) }, { signal })
}

/** Returns the dependencies of an answer that reads a window by days, hours and samples, without empty parts. */
export function readsOf(noun: string, cut: HourCut | DayCut, key?: string): Dependency[] {
  const days =
    'firstDay' in cut ? { first: cut.firstDay, last: cut.lastDay } : { first: cut.lastHour, last: cut.lastHour }
  const parts: [projection: string, fromMs: number, toMs: number][] = [
    [noun, cut.from, cut.firstHour],
    [noun, cut.lastHour, cut.to],
    [`${noun}-hour`, cut.firstHour, days.first],
    [`${noun}-hour`, days.last, cut.lastHour],
    [`${noun}-day`, days.first, days.last]
  ]
  return parts
    .filter(([, fromMs, toMs]) => fromMs < toMs)
    .map(([projection, fromMs, toMs]) => ({ projection, fromMs, toMs, ...(key === undefined ? {} : { key }) }))
}

const boundsOf = ({ fromMs, toMs }: SeriesRequest): Bounds => ({ from: fromMs, to: toMs })

function bucketsOf(series: SeriesRequest): HourCut & { width: number } {
  return { ...cutOf(series), width: series.widthSeconds }
}

function cutOf(series: SeriesRequest): HourCut {
  const isOfHours = series.widthSeconds > 0 && series.widthSeconds % 3600 === 0
  return isOfHours ? cutAtHours(series) : uncut(series)
}

function isEmptyArray(json: Uint8Array): boolean {
  // At most "[" and "]" with line breaks; a single point takes over 40 bytes.
  return json.length < 8
}
