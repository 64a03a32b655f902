import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { z } from 'zod'
import type { TestService } from '../boards-service.js'
import { ask, sameList } from '../service/ask.js'
import { gamenetJson } from '../service/gamenet.js'
import { recordedFile } from '../service/recorded.js'

/*
 * Hourly counts of nine years; every answer is compared with a plain computation over the rows of the file.
 */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const WIDTHS = [300, 900, 3600, 21_600, 86_400, 604_800]

const Points = z.array(z.strictObject({ recorded_at: z.string(), online_count: z.int() }))
/** Width of a bucket. */
const Peaks = z.array(
  z.strictObject({
    recorded_at: z.string(),
    online_count: z.int(),
    min: z.int(),
    average: z.number(),
    samples: z.int()
  })
)
const Days = z.array(
  z.strictObject({
    date: z.string(),
    min_online: z.int(),
    max_online: z.int(),
    avg_online: z.number(),
    samples: z.int(),
    coverage: z.number()
  })
)
type Hour = { readonly ms: number; readonly online: number | undefined }
type Sample = { readonly ms: number; readonly online: number }

/** Imports nine years of hourly counts, completely or in part, into a service without counts. */
export async function provesCounts(t: Test, service: TestService, options: { isWhole: boolean }): Promise<void> {
  const recorded = await recordedFile(t, 'online-hourly-2017-2026.csv.gz')
  const path = options.isWhole ? recorded : await partOf(recorded, join(service.directory, 'hours.csv.gz'))
  const hours = hoursOf(gunzipSync(await readFile(path)).toString())
  const samples = hours.flatMap(({ ms, online }) => (online === undefined ? [] : [{ ms, online }]))
  const missing = hours.filter(({ online }) => online === undefined)
  const firstDay = dayOf(hours[0]?.ms ?? 0)
  const endDay = dayOf(hours.at(-1)?.ms ?? 0) + DAY_MS
  const { environment } = service
  const network = `${service.running.apiUrl}/api/network-stats`
  const command = [
    'import',
    'network-count',
    path,
    '--columns',
    'observedAt=Timestamp,online=Peak Player Count'
  ] as const

  await t.test('the import reads every row', async (t) => {
    const [report] = z.array(z.unknown()).parse(await gamenetJson(environment, command))
    t.match(report, { rowsRead: hours.length, published: samples.length, missing: missing.length, rejected: 0 })
    t.match(report, { missing: 221, finished: true, alreadyDone: false, faults: [] })
    if (options.isWhole) t.equal(hours.length, 79_506)
  })

  await t.test('the samples of the whole history are exactly the rows that are not empty', async (t) => {
    const answer = await ask(`${network}/online-24h?${windowOf(firstDay, endDay)}&resolution=raw`)
    t.equal(answer.headers.get('x-resolution-seconds'), '0')
    const points = Points.parse(answer.body)
    sameList(t, points, samples.map(pointOf), 'every point is a row of the file')
    t.equal(Math.max(...points.map((point) => point.online_count)), 216_762, 'the highest')
    const answered = new Set(points.map((point) => point.recorded_at))
    t.equal(missing.filter(({ ms }) => answered.has(textOf(ms))).length, 0, 'a missing hour is absent')
    const zeros = samples.filter(({ online }) => online === 0)
    t.equal(zeros.length, 111)
    sameList(
      t,
      points.filter((point) => point.online_count === 0),
      zeros.map(pointOf),
      'a written 0 stays'
    )
  })

  await t.test('the days of every year are the days of the file', async (t) => {
    const wanted = daysOf(samples)
    const rows: z.infer<typeof Days> = []
    for (let from = firstDay; from < endDay; from += 365 * DAY_MS) {
      const to = Math.min(endDay, from + 365 * DAY_MS)
      rows.push(...Days.parse((await ask(`${network}/daily-online?${windowOf(from, to)}`)).body))
    }
    sameList(t, rows, wanted, 'every day')
    t.equal(Math.max(...rows.map((row) => row.max_online)), 216_762, 'the highest')
    const answered = new Map(rows.map((row) => [row.date, row]))
    const holed = [...new Set(missing.map(({ ms }) => textOf(ms).slice(0, 10)))]
    const empty = holed.filter((date) => !answered.has(date))
    const allDays = new Set(hours.map(({ ms }) => dayOf(ms))).size
    t.equal(empty.length, 6, 'no row for the days without any sample')
    t.equal(allDays - rows.length, 6, 'and a row for every other day')
    const partial = holed.filter((date) => !empty.includes(date))
    t.ok(partial.length > 0)
    t.same(
      partial.filter((date) => (answered.get(date)?.coverage ?? 1) >= 1),
      [],
      'coverage is below 1 on every day that misses an hour'
    )
    for (const date of empty) {
      const from = Date.parse(date)
      t.same((await ask(`${network}/daily-online?${windowOf(from, from + DAY_MS)}`)).body, [], `${date} has no row`)
      t.same((await ask(`${network}/online-24h?${windowOf(from, from + DAY_MS)}`)).body, [], `${date} has no point`)
    }
  })

  await t.test('a day, a year and nine years can be requested', async (t) => {
    const at = (date: string) => Date.parse(`${date}T00:00:00Z`)
    const spans: [string, number, number, number][] = [
      ['a day', at('2021-06-19'), at('2021-06-20'), 0],
      ['the day of the highest', dayOf(highest(samples).ms), dayOf(highest(samples).ms) + DAY_MS, 0],
      ['a month', at('2020-02-01'), at('2020-03-01'), 3600],
      ['a year', at('2020-01-01'), at('2021-01-01'), 21_600],
      ['nine years', firstDay, endDay, 604_800],
      ['nine years that begin and end inside of a bucket', firstDay + 7 * HOUR_MS, endDay - 5 * HOUR_MS, 604_800]
    ]
    for (const [name, from, to, width] of spans) {
      const answer = await ask(`${network}/online-24h?${windowOf(from, to)}`)
      t.equal(widthOf(from, to), width)
      t.equal(answer.headers.get('x-resolution-seconds'), String(width), name)
      sameList(t, peaksIn(answer.body, width), peaksOf(samples, from, to, width), name)
    }
    for (const width of [3600, 86_400]) {
      const answer = await ask(`${network}/online-24h?${windowOf(firstDay, endDay)}&resolution=${width}`)
      sameList(t, peaksIn(answer.body, width), peaksOf(samples, firstDay, endDay, width), `nine years by ${width} s`)
    }
    t.same(
      (await ask(`${network}/lobbies-24h?${windowOf(firstDay, endDay)}`)).body,
      [],
      'counts that do not exist are empty'
    )
    t.same((await ask(`${network}/registered-users?days=365`)).body, [])
  })

  await t.test('a second import publishes nothing and changes no answer', async (t) => {
    const urls = [
      `${network}/online-24h?${windowOf(firstDay, endDay)}&resolution=raw`,
      `${network}/online-24h?${windowOf(firstDay, endDay)}`,
      `${network}/daily-online?${windowOf(firstDay, endDay)}`,
      `${network}/daily-online?${windowOf(Date.parse('2021-06-01'), Date.parse('2021-07-01'))}`
    ]
    const before = await Promise.all(urls.map((url) => ask(url)))
    t.match(await gamenetJson(environment, command), [{ alreadyDone: true, published: 0, rejected: 0 }])
    await service.caughtUp()
    for (const [at, url] of urls.entries()) {
      const etag = before[at]?.headers.get('etag') ?? ''
      t.match(etag, /^(W\/)?"[^"]+"$/)
      const after = await ask(url)
      t.equal(after.headers.get('etag'), etag, 'the same tag')
      t.ok(after.text === before[at]?.text, 'the same body')
      t.equal((await ask(url, { 'if-none-match': etag })).status, 304)
    }
  })
}

/**
 * Writes a part of the hourly file: every 16th day, and every day with a rare value: a missing hour, a 0, the highest
 * count, and the first and the last day.
 */
async function partOf(path: string, target: string): Promise<string> {
  const csv = gunzipSync(await readFile(path)).toString()
  const hours = hoursOf(csv)
  const rare = hours.filter(({ online }) => online === undefined || online === 0 || online === 216_762)
  const kept = new Set([hours[0], hours.at(-1), ...rare].map((hour) => dayOf(hour?.ms ?? 0)))
  const [head, ...lines] = csv.trimEnd().split(/\r?\n/)
  const part = lines.filter((_line, at) => {
    const day = dayOf(hours[at]?.ms ?? 0)
    return kept.has(day) || (day / DAY_MS) % 16 === 0
  })
  await writeFile(target, gzipSync([head, ...part, ''].join('\n')))
  return target
}

/** The rows of the hourly file; an empty cell is undefined. */
function hoursOf(csv: string): Hour[] {
  const [, ...lines] = csv.trimEnd().split(/\r?\n/)
  return lines.map((line) => {
    const [time = '', online = ''] = line.split(',')
    return { ms: Date.parse(`${time.replace(' ', 'T')}Z`), online: online === '' ? undefined : Number(online) }
  })
}

function dayOf(ms: number): number {
  return ms - (ms % DAY_MS)
}

function textOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}

function pointOf({ ms, online }: Sample): z.infer<typeof Points>[number] {
  return { recorded_at: textOf(ms), online_count: online }
}

/** Returns the points of an answer; buckets, whose averages are between their extremes, without the further figures. */
function peaksIn(body: unknown, width: number): z.infer<typeof Points> {
  if (width === 0) return Points.parse(body)
  return Peaks.parse(body).map(({ min, average, samples, ...point }) => {
    if (samples < 1 || average < min || average > point.online_count)
      throw new Error(`${point.recorded_at}: ${average} is not between ${min} and ${point.online_count}`)
    return point
  })
}

function windowOf(fromMs: number, toMs: number): string {
  return `from=${new Date(fromMs).toISOString()}&to=${new Date(toMs).toISOString()}`
}

function highest(samples: readonly Sample[]): Sample {
  return samples.reduce((best, sample) => (sample.online > best.online ? sample : best))
}

/** Returns one row per day with a sample: the mean to one decimal and the share of 24 hours to three, halves up. */
function daysOf(samples: readonly Sample[]): z.infer<typeof Days> {
  const days = new Map<string, number[]>()
  for (const { ms, online } of samples) {
    const date = textOf(ms).slice(0, 10)
    days.set(date, [...(days.get(date) ?? []), online])
  }
  return [...days].map(([date, counts]) => {
    const total = counts.reduce((sum, count) => sum + count, 0)
    return {
      date,
      min_online: Math.min(...counts),
      max_online: Math.max(...counts),
      avg_online: Math.floor((total * 20 + counts.length) / (2 * counts.length)) / 10,
      samples: counts.length,
      coverage: Math.floor((counts.length * 2000 + 24) / 48) / 1000
    }
  })
}

/** The default width of a window: samples up to a day, then the finest with at most 2,000 buckets. */
function widthOf(fromMs: number, toMs: number): number {
  if (toMs - fromMs <= DAY_MS) return 0
  const buckets = (width: number) => 1 + (bucketOf(toMs - 1, width) - bucketOf(fromMs, width)) / width / 1000
  return WIDTHS.find((width) => buckets(width) <= 2000) ?? 604_800
}

/** The start of a bucket: a week begins on Monday. */
function bucketOf(ms: number, width: number): number {
  if (width < 604_800) return ms - (ms % (width * 1000))
  const day = ms - (ms % DAY_MS)
  return day - ((new Date(day).getUTCDay() + 6) % 7) * DAY_MS
}

function peaksOf(samples: readonly Sample[], fromMs: number, toMs: number, width: number): z.infer<typeof Points> {
  const within = samples.filter(({ ms }) => ms >= fromMs && ms < toMs)
  if (width === 0) return within.map(pointOf)
  const peaks = new Map<number, number>()
  for (const { ms, online } of within) {
    const bucket = bucketOf(ms, width)
    peaks.set(bucket, Math.max(online, peaks.get(bucket) ?? 0))
  }
  return [...peaks].map(([ms, online]) => pointOf({ ms, online }))
}
