import { deepEqual, equal, match, ok } from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'

/* The modules of the page that need no browser. */
type Points = { instants: number[]; counts: (number | null)[] }
type View = { titleId: string | undefined; range: string; zoom: { fromMs: number; toMs: number } | undefined }
type Series = {
  pointsOf(body: readonly Record<string, unknown>[], field: string): Points
  withGaps(points: Points, resolutionSeconds: number): Points & { gaps: number }
}
type Views = {
  readView(hash: string): View
  hashOf(view: View): string
  questionsOf(view: View, nowMs: number): { path: string; field: string }[]
  rangesOf(titleId: string | undefined): Record<string, unknown>
  zoomTo(fromMs: number, toMs: number, nowMs: number): { fromMs: number; toMs: number }
}

const load = async (name: string): Promise<unknown> =>
  await import(new URL(`../../dashboard/${name}`, import.meta.url).href)
const { pointsOf, withGaps } = (await load('series.js')) as Series
const { readView, hashOf, questionsOf, rangesOf, zoomTo } = (await load('view.js')) as Views

const START = Date.UTC(2026, 2, 14) / 1000
const NOW_MS = Date.UTC(2026, 2, 14, 20, 0, 30)

test('an instant of an answer is read as UTC, and a count of 0 stays 0', async (t) => {
  t.same(pointsOf([{ recorded_at: '2026-03-14 00:00:07', online_count: 0 }], 'online_count'), {
    instants: [START + 7],
    counts: [0]
  })
})

/** Which of up to 200 places have a point: long runs with and without points, and single ones. */
const keptPlaces = fc
  .array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 12 })), { maxLength: 30 })
  .map((runs) =>
    runs
      .flatMap(([isKept, length]) => Array.from({ length }, () => isKept))
      .flatMap((isKept, index) => (isKept ? [index] : []))
  )

/** Each point has enough adjacent neighbours to determine the usual distance. */
function isMostlyKept(kept: readonly number[]): boolean {
  const distances = kept.slice(1).map((index, place) => index - (kept[place] ?? 0))
  const isUsual = (around: readonly number[]) => around.filter((each) => each === 1).length * 2 > around.length
  return distances.every((_, place) => {
    const sides = [distances.slice(Math.max(0, place - 7), place), distances.slice(place + 1, place + 8)]
    return sides.every((side) => side.length === 0 || isUsual(side)) && sides.some((side) => side.length > 0)
  })
}

test('every run of missing buckets is one gap, and nothing else is', async (t) => {
  const widths = fc.constantFrom(300, 900, 3600, 21_600, 86_400, 604_800)
  fc.assert(
    fc.property(widths, keptPlaces, (width, kept) => {
      // Hourly history is also requested in finer buckets: then the distance is an hour.
      const step = Math.max(width, 3600)
      const points = { instants: kept.map((index) => START + index * step), counts: kept.map((index) => index % 3) }
      const { instants, counts, gaps } = withGaps(points, width)
      const runs = kept.slice(1).filter((index, place) => index - (kept[place] ?? 0) > 1).length
      equal(gaps, runs)
      equal(counts.filter((count) => count === null).length, runs)
      deepEqual(
        instants.filter((_, place) => counts[place] !== null),
        points.instants
      )
      deepEqual(
        instants,
        [...instants].sort((a, b) => a - b)
      )
    }),
    { seed: 1 }
  )
  t.pass()
})

test('every run of missing samples is one gap, however far apart they are taken', async (t) => {
  fc.assert(
    fc.property(fc.constantFrom(15, 60, 300, 3600), keptPlaces.filter(isMostlyKept), (step, kept) => {
      const { gaps } = withGaps({ instants: kept.map((index) => START + index * step), counts: kept }, 0)
      equal(gaps, kept.slice(1).filter((index, place) => index - (kept[place] ?? 0) > 1).length)
    }),
    { seed: 1 }
  )
  t.pass()
})

test('hourly history is followed by minutely samples without a gap; a missed minute and a missed hour are gaps', async (t) => {
  const hours = Array.from({ length: 48 }, (_, index) => START + index * 3600).filter((_, index) => index !== 20)
  const begin = (hours.at(-1) ?? 0) + 3600
  const minutes = Array.from({ length: 120 }, (_, index) => begin + index * 60 + (index % 5)).filter(
    (_, index) => index !== 70
  )
  const instants = [...hours, ...minutes]
  const found = withGaps({ instants, counts: instants.map(() => 5) }, 0)
  const nulls = found.instants.filter((_, index) => found.counts[index] === null)
  t.equal(found.gaps, 2)
  t.ok((nulls[0] ?? 0) > START + 19 * 3600 && (nulls[0] ?? 0) < START + 21 * 3600)
  t.ok((nulls[1] ?? 0) > begin + 69 * 60 && (nulls[1] ?? 0) < begin + 71 * 60)
})

test('two lone samples are joined only if they are at most an hour apart', async (t) => {
  for (const [distance, gaps] of [
    [60, 0],
    [3600, 0],
    [7200, 1]
  ] as const) {
    t.equal(withGaps({ instants: [START, START + distance], counts: [1, 2] }, 0).gaps, gaps, String(distance))
  }
  t.same(withGaps({ instants: [], counts: [] }, 0), { instants: [], counts: [], gaps: 0 })
  t.same(withGaps({ instants: [START], counts: [7] }, 300), { instants: [START], counts: [7], gaps: 0 })
})

const zoom = fc
  .tuple(fc.integer({ min: 946_684_800, max: 1_800_000_000 }), fc.integer({ min: 1, max: 400_000_000 }))
  .map(([from, span]) => ({ fromMs: from * 1000, toMs: (from + span) * 1000 }))
const views = fc
  .record({
    titleId: fc.option(fc.constantFrom('4d5307e6', '00000000', 'ffffffff'), { nil: undefined }),
    choice: fc.nat(),
    zoom: fc.option(zoom, { nil: undefined })
  })
  .map(({ titleId, choice, zoom }): View => {
    const names = Object.keys(rangesOf(titleId))
    return { titleId, range: names[choice % names.length] ?? '', zoom }
  })

test('a shared address shows the same view', async (t) => {
  fc.assert(
    fc.property(views, (view) => deepEqual(readView(hashOf(view)), view)),
    { seed: 1 }
  )
  t.pass()
})

test('any text after # is a valid view', async (t) => {
  const parts = fc.constantFrom(
    'range=',
    'all',
    '7d',
    '&',
    'from=',
    'to=',
    '2026-01-01T00:00:00Z',
    'title=',
    '4d5307e6',
    '%'
  )
  const texts = fc.oneof(
    fc.string(),
    fc.array(parts).map((each) => each.join(''))
  )
  fc.assert(
    fc.property(texts, (text) => {
      const view = readView(`#${text}`)
      ok(Object.hasOwn(rangesOf(view.titleId), view.range))
      for (const { path } of questionsOf(view, NOW_MS)) match(path, /^api\/[\w/-]+\?[\w=&%:.-]+$/)
    }),
    { seed: 1 }
  )
  t.pass()
})

test('a zoomed range has whole minutes, at least ten, and does not end in the future', async (t) => {
  fc.assert(
    fc.property(zoom, ({ fromMs, toMs }) => {
      const zoomed = zoomTo(fromMs, toMs, NOW_MS)
      equal(zoomed.fromMs % 60_000, 0)
      equal(zoomed.toMs % 60_000, 0)
      ok(zoomed.toMs - zoomed.fromMs >= 600_000)
      ok(zoomed.toMs <= NOW_MS + 60_000)
    }),
    { seed: 1 }
  )
  t.pass()
})
