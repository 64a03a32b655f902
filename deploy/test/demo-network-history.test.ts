import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { gunzipSync, gzipSync } from 'node:zlib'
import {
  boardKey,
  LeaderboardEntryChanged,
  leaderboardEntryTopic,
  leaderboardTopic,
  NetworkCounted,
  networkCountTopic,
  PresenceSeen,
  TitleCounted,
  TitleDescribed,
  type Topic,
  titleCountTopic
} from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import {
  APPEND_EVENTS_MAX,
  type AppendHistory,
  DEMO_HISTORY_SOURCE,
  type FillHistoryOptions,
  type FillProgress,
  fillHistory,
  PART_EVENTS_MAX,
  planHistory,
  SAMPLE_SOURCE
} from '../demo/network/history.js'
import { type HistoryJournal, type HistoryProgress, historyJournalFile } from '../demo/network/history-journal.js'
import { ONLINE_HISTORY_FILE, readCatalogue, readOnlineHistory } from '../demo/network/samples.js'
import { createWorld } from '../demo/network/world.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const QUARTER_MS = 15 * MINUTE_MS
const START = Date.UTC(2026, 10, 21, 8, 51, 17)
const UNTIL = Date.UTC(2026, 10, 21, 8, 51)
const MINUTES = Date.UTC(2026, 10, 19, 8)
const SAMPLE_END = Date.UTC(2026, 2, 15)

const world = createWorld(7)
const sample = await readOnlineHistory()

/** 20 titles instead of 200, 10 users instead of 400: the same kinds of part with a tenth of the events. */
const small = {
  world: createWorld(7, { catalogue: readCatalogue().slice(0, 20), users: 10 }),
  sample: sample.slice(-6000)
}

/** A tenth of the titles and an eighth of the users, with the whole sample. */
const medium = { world: createWorld(7, { catalogue: readCatalogue().slice(0, 20), users: 50 }), sample }

test('the sample is read unchanged: missing hours stay missing, zeros are counts', async (t) => {
  const lines = gunzipSync(readFileSync(ONLINE_HISTORY_FILE)).toString('utf8').trim().split(/\r?\n/).slice(1)
  const expected = lines.map((line) => line.split(',')).filter(([, peak]) => peak !== '')
  t.equal(lines.length, 79_506)
  t.equal(sample.length, 79_506 - 221)
  t.same(
    sample.map(({ observedAt, online }) => `${observedAt} ${online}`),
    expected.map(([at, peak]) => `${at?.replace(' ', 'T')}Z ${peak}`)
  )
  t.equal(Math.max(...sample.map(({ online }) => online ?? 0)), 216_762)
  t.equal(sample.filter(({ online }) => online === 0).length, 111)
  t.notOk(sample.some((hour) => 'registered' in hour || 'lobbies' in hour))
})

test('a cell that is not a count is refused with its row', async (t) => {
  const file = `${t.testdir()}/history.csv.gz`
  await writeFile(file, gzipSync('Timestamp,Peak Player Count\n2026-01-01 00:00:00,5\n2026-01-01 01:00:00,many\n'))
  await t.rejects(readOnlineHistory(file), /2026-01-01 01:00:00,many/)
})

test('the complete history is valid, without duplicates and without events after the start', async (t) => {
  const { append, facts, sizes } = collector()
  const reports: { events: number; total: number }[] = []
  t.same(await fill({ ...medium, append, onProgress: (report) => reports.push(report) }), { finished: true })

  const minutes = (UNTIL - MINUTES) / MINUTE_MS
  const ownHours = (MINUTES - SAMPLE_END) / HOUR_MS
  const titleHours = (MINUTES - (Date.UTC(2026, 10, 21, 8) - 90 * DAY_MS)) / HOUR_MS
  t.equal(facts.get(`network-count ${SAMPLE_SOURCE}`)?.size, 79_285)
  t.equal(facts.get(`network-count ${DEMO_HISTORY_SOURCE}`)?.size, ownHours + minutes)
  const sightings = planHistory(medium.world, sample, UNTIL).filter(({ name }) => name.startsWith('presence'))
  t.equal(facts.get(`presence ${DEMO_HISTORY_SOURCE}`)?.size, sumOf(sightings.map(({ size }) => size)))
  t.equal(facts.get(`title-count ${DEMO_HISTORY_SOURCE}`)?.size, 20 * (titleHours + Math.ceil(minutes / 5)))
  const distinct = [...facts.values()].reduce((sum, ofSource) => sum + ofSource.size, 0)
  t.equal(sumOf(sizes), distinct, 'as many facts as events')
  t.ok(Math.max(...sizes) <= APPEND_EVENTS_MAX)
  t.equal(reports.at(-1)?.events, distinct)
  t.ok(reports.every((report) => report.total === distinct))
  for (const [source, ofSource] of facts) {
    const instants = [...ofSource.keys()].map((fact) => fact.slice(fact.indexOf('@') + 1)).sort()
    t.ok(Date.parse(instants.at(-1) ?? '') < UNTIL, `${source} ends before the start`)
  }
})

test('sightings equal the players page of their instants, and a user who goes offline has one more', async (t) => {
  const events = new Map<string, PresenceSeen>()
  for (const part of planHistory(world, sample, UNTIL).filter(({ name }) => name.startsWith('presence'))) {
    t.ok(part.size <= PART_EVENTS_MAX)
    let made = 0
    await part.append(async (_topic, batch) => {
      made += batch.length
      for (const event of batch as unknown as readonly PresenceSeen[]) {
        events.set(`${event.username} ${Date.parse(event.observedAt)}`, PresenceSeen.parse(event))
      }
    })
    t.equal(made, part.size)
  }
  t.ok(events.size > 80_000 && events.size < 150_000, `${events.size} sightings`)
  const last = Math.floor((UNTIL - 1) / QUARTER_MS) * QUARTER_MS
  const wrong: unknown[] = []
  for (let ms = last; ms > last - 27 * DAY_MS; ms -= 29 * QUARTER_MS) {
    const before = world.sightingsAt(ms - QUARTER_MS)
    for (const [user, { username, gamertag, playing }] of world.sightingsAt(ms).entries()) {
      const found = events.get(`${username} ${ms}`)
      const wasOnline = before[user]?.playing !== undefined
      const isRight =
        playing === undefined
          ? found?.state === (wasOnline ? 'offline' : found && 'offline')
          : found?.state === 'online' && found.game === playing.title.name && found.gamertag === gamertag
      if (!isRight) wrong.push({ username, ms, found })
    }
  }
  t.same(wrong.slice(0, 3), [])
})

test('every event of the demo matches its schema', async (t) => {
  const parts = planHistory(world, sample, UNTIL)
  const schemas = new Map<Topic<unknown>['name'], typeof NetworkCounted | typeof TitleCounted>([
    [networkCountTopic.name, NetworkCounted],
    [titleCountTopic.name, TitleCounted]
  ])
  for (const part of [parts[0], parts[1], parts.at(-1)]) {
    let appended = 0
    await part?.append(async (topic, events) => {
      for (const event of events) schemas.get(topic.name)?.parse(event)
      appended += events.length
    })
    t.equal(appended, part?.size)
  }
})

test('a world with a past has each board that is not an event in one part, with valid events', async (t) => {
  const past = createWorld(7, { catalogue: readCatalogue().slice(0, 8), users: 10, hasPast: true })
  const progress: FillProgress[] = []
  const seen = new Map<string, string>()
  const described: string[] = []
  let part = 0
  let size = 0
  await fill({
    world: past,
    sample: [],
    onProgress: (each) => {
      progress.push(each)
      part += 1
      t.ok(size <= PART_EVENTS_MAX, `${size} events in a part`)
      size = 0
    },
    append: async (topic, events) => {
      size += topic.name === leaderboardEntryTopic.name ? events.length : 0
      if (topic.name === leaderboardTopic.name) described.push(...events.map((event) => topic.key(event)))
      for (const event of topic.name === leaderboardEntryTopic.name ? events : []) {
        const { changedAt, ...parsed } = LeaderboardEntryChanged.parse(event)
        if (Date.parse(changedAt) >= UNTIL) t.fail(`${changedAt} is after the start`)
        const place = seen.get(boardKey(parsed)) ?? `part ${part}`
        if (place !== `part ${part}`) t.fail(`${boardKey(parsed)} is in ${place} and in part ${part}`)
        seen.set(boardKey(parsed), place)
      }
    }
  })
  const boards = past.titles.flatMap((title) => past.boardsOf(title)).filter(({ eventMs }) => eventMs === undefined)
  const keys = boards.map(({ title, leaderboardId }) => boardKey({ titleId: title.titleId, leaderboardId })).sort()
  t.same([...seen.keys()].sort(), keys)
  t.same(described.sort(), keys)
  t.equal(progress.at(-1)?.events, progress.at(-1)?.total)
  const last = progress.findIndex(({ isOfUsers }) => !isOfUsers)
  t.ok(last > 0 && last < progress.length - 1, 'sightings and boards are complete before the counts of titles')
  t.notOk(progress.slice(last).some(({ isOfUsers }) => isOfUsers))
})

test('a catalogue’s publishers and dates are part of the history', async (t) => {
  const described: TitleDescribed[] = []
  for (const part of planHistory(small.world, [], UNTIL).filter(({ name }) => name.startsWith('title/'))) {
    await part.append(async (_topic, events) => {
      described.push(...events.map((event) => TitleDescribed.parse(event)))
    })
  }
  t.equal(described.length, small.world.titles.length)
  for (const { titleId, publisher, releaseDate } of described) {
    const title = readCatalogue().find((each) => each.titleId === titleId)
    t.same([publisher ?? '', releaseDate ?? null], [title?.publisher, title?.releaseDate])
  }
})

test('the newest counts are first, and short parts before long ones', async (t) => {
  const names = planHistory(world, sample, UNTIL).map((part) => part.name)
  t.equal(names[0], 'network-count/minute/2026-11-19T08:00:00Z')
  t.match(names.at(-1), /^title-count\/hour\/2026-08-23T08:00:00Z$/)
  const firstTitles = names.findIndex((name) => name.startsWith('title-count'))
  t.notOk(names.slice(firstTitles).some((name) => name.startsWith('network-count')))
  t.equal(new Set(names).size, names.length)
})

test('counts continue without a jump: from the sample to the demo, and from history to live counts', async (t) => {
  const counts = await networkCounts()
  const step = (before: number, after: number) => Math.abs((counts.get(after) ?? 0) / (counts.get(before) ?? 1) - 1)
  const lastHour = sample.at(-1)?.online ?? 0
  t.ok(Math.abs((counts.get(SAMPLE_END) ?? 0) / lastHour - 1) < 0.15, `${lastHour}, then ${counts.get(SAMPLE_END)}`)
  for (let ms = SAMPLE_END; ms + HOUR_MS < MINUTES; ms += HOUR_MS) {
    if (step(ms, ms + HOUR_MS) > 0.3) t.fail(`a leap of ${step(ms, ms + HOUR_MS)} at ${new Date(ms).toISOString()}`)
  }
  for (let ms = MINUTES; ms + MINUTE_MS < UNTIL; ms += MINUTE_MS) {
    if (step(ms, ms + MINUTE_MS) > 0.02)
      t.fail(`a leap of ${step(ms, ms + MINUTE_MS)} at ${new Date(ms).toISOString()}`)
    if (counts.get(ms) !== world.networkAt(ms).online)
      t.fail(`history and world differ at ${new Date(ms).toISOString()}`)
  }
  const weekOf = (endMs: number) => {
    const hours = Array.from({ length: 168 }, (_, hour) => counts.get(endMs - (hour + 1) * HOUR_MS) ?? Number.NaN)
    return hours.reduce((sum, count) => sum + count, 0) / 168
  }
  const lastWeek = sample.slice(-168).reduce((sum, { online }) => sum + (online ?? 0), 0) / 168
  const weeks = [lastWeek, ...Array.from({ length: 8 }, (_, week) => weekOf(SAMPLE_END + (week + 1) * 7 * DAY_MS))]
  for (const [index, week] of weeks.entries()) {
    const before = weeks[index - 1] ?? week
    t.ok(Math.abs(week / before - 1) < 0.15, `week ${index}: ${Math.round(week)} after ${Math.round(before)}`)
  }
})

test('the counts of titles are within those of the network', async (t) => {
  const counts = await networkCounts()
  const [newest] = planHistory(world, sample, UNTIL).filter((part) => part.name.startsWith('title-count/minute'))
  const sums = new Map<number, number>()
  await newest?.append(async (_topic, events) => {
    for (const { observedAt, online } of events as unknown as readonly TitleCounted[]) {
      sums.set(Date.parse(observedAt), (sums.get(Date.parse(observedAt)) ?? 0) + online)
    }
  })
  t.ok(sums.size > 0)
  for (const [ms, sum] of sums) {
    const online = counts.get(ms) ?? 0
    if (sum > online || sum < 0.88 * online) t.fail(`${sum} in titles of ${online}`)
  }
})

test('a crash at any append or mark, and a later start, lose no event and create no other one', async (t) => {
  const whole = collector()
  await fill({ append: whole.append, ...small })
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 100 }), { maxLength: 4 }), async (crashes) => {
      const journal = memoryJournal()
      const pieces = collector()
      for (const [start, crash] of crashes.entries()) {
        let steps = 0
        const orCrash = () => {
          steps += 1
          if (steps > crash) throw new Error('killed')
        }
        const killed: HistoryJournal = {
          load: journal.load,
          save: async (progress) => {
            orCrash()
            await journal.save(progress)
          }
        }
        const append: AppendHistory = async (topic, events, source) => {
          await pieces.append(topic, events, source)
          orCrash()
        }
        const now = () => START + (journal.hasBegun() ? start * 5 * HOUR_MS : 0)
        await fill({ append, journal: killed, now, ...small }).catch(() => {})
      }
      const now = () => START + (journal.hasBegun() ? DAY_MS : 0)
      await fill({ append: pieces.append, journal, now, ...small })
      for (const [source, facts] of whole.facts) {
        const found = pieces.facts.get(source)
        if (found?.size !== facts.size) throw new Error(`${found?.size} facts instead of ${facts.size}`)
        for (const [fact, value] of facts) if (found.get(fact) !== value) throw new Error(`${fact} differs`)
      }
      const appendedTwice = sumOf(pieces.sizes) - sumOf(whole.sizes)
      if (appendedTwice > crashes.length * PART_EVENTS_MAX) throw new Error(`${appendedTwice} events came twice`)
    }),
    { seed: 1, numRuns: 4 }
  )
  t.pass()
})

test('a finished history is not written again', async (t) => {
  const journal = memoryJournal()
  await journal.save({ seed: 7, until: '2026-11-21T08:51:00Z', done: [], finished: true })
  const { append, sizes } = collector()
  t.same(await fill({ journal, append }), { finished: true })
  t.equal(sizes.length, 0)
})

test('a history of another seed is refused with a sentence', async (t) => {
  const journal = memoryJournal()
  await journal.save({ seed: 8, until: '2026-11-21T08:51:00Z', done: [], finished: false })
  await t.rejects(fill({ journal }), /seed 8; this one has seed 7/)
})

test('a failure while a part is generated is that of the history, not of the process', async (t) => {
  const { append } = collector()
  const pause = async () => {
    throw new Error('the tables are away')
  }
  await t.rejects(fill({ ...small, append, journal: memoryJournal(), pause }), { message: 'the tables are away' })
})

test('a stop between two parts, also in an endless pause, leaves the rest to the next start', async (t) => {
  const journal = memoryJournal()
  const parts = planHistory(small.world, small.sample, UNTIL)
  const stop = new AbortController()
  const first = collector()
  let pauses = 0
  const pause = async () => {
    pauses += 1
    if (pauses < 4) return
    stop.abort()
    await new Promise(() => {})
  }
  t.same(await fill({ ...small, append: first.append, journal, signal: stop.signal, pause }), { finished: false })
  t.equal(sumOf(first.sizes), sumOf(parts.slice(0, 3).map((part) => part.size)))
  const second = collector()
  t.same(await fill({ ...small, append: second.append, journal }), { finished: true })
  t.equal(sumOf(first.sizes) + sumOf(second.sizes), sumOf(parts.map((part) => part.size)))
})

test('with a clock before the sample’s end no count is in the future', async (t) => {
  const until = Date.UTC(2020, 5, 1, 12)
  let events = 0
  for (const part of planHistory(medium.world, sample, until)) {
    await part.append(async (_topic, batch) => {
      events += batch.length
      const late = (batch as unknown as readonly NetworkCounted[]).find(
        ({ observedAt }) => Date.parse(observedAt) >= until
      )
      if (late !== undefined) t.fail(`${late.observedAt} is not yet`)
    })
  }
  t.ok(events > 50_000)
})

test('writing history does not block the event loop', async (t) => {
  let turns = 0
  let isFilling = true
  const turn = () => {
    turns += 1
    if (isFilling) setImmediate(turn)
  }
  setImmediate(turn)
  await fill({ append: async () => {} })
  isFilling = false
  t.ok(turns > 50, `the loop went round ${turns} times`)
})

test('the file of the journal has the last saved state; an unreadable file is refused', async (t) => {
  const file = `${t.testdir()}/demo/history.json`
  const journal = historyJournalFile(file)
  t.equal(await journal.load(), undefined)
  const progress = { seed: 7, until: '2026-11-21T08:51:00Z', done: ['a'], finished: false }
  await journal.save(progress)
  await journal.save({ ...progress, done: ['a', 'b'] })
  t.same(await historyJournalFile(file).load(), { ...progress, done: ['a', 'b'] })
  await writeFile(file, '{"seed":')
  await t.rejects(journal.load(), /history\.json has no valid progress/)
})

function fill(options: Partial<FillHistoryOptions>) {
  return fillHistory({
    append: async () => {},
    world,
    journal: memoryJournal(),
    now: () => START,
    sample,
    ...options
  })
}

/** A log that stores each fact once per topic and source: key and instant, with its value. */
function collector() {
  const facts = new Map<string, Map<string, string>>()
  const sizes: number[] = []
  const append: AppendHistory = async (topic, events, source) => {
    const ofSource = facts.get(`${topic.name} ${source}`) ?? new Map<string, string>()
    facts.set(`${topic.name} ${source}`, ofSource)
    for (const event of events) {
      const value = JSON.stringify(event)
      const fact = `${topic.key(event)}@${topic.instant(event)}`
      if (ofSource.has(fact) && ofSource.get(fact) !== value) throw new Error(`${fact} came with another value`)
      ofSource.set(fact, value)
    }
    sizes.push(events.length)
  }
  return { append, facts, sizes }
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

function memoryJournal(): HistoryJournal & { hasBegun(): boolean } {
  let saved: HistoryProgress | undefined
  return {
    hasBegun: () => saved !== undefined,
    load: async () => saved,
    save: async (progress) => {
      saved = progress
    }
  }
}

/** The demo's own network counts by instant. */
async function networkCounts(): Promise<Map<number, number>> {
  const counts = new Map<number, number>()
  for (const part of planHistory(world, sample, UNTIL)) {
    if (!/^network-count\/(hour|minute)/.test(part.name)) continue
    await part.append(async (_topic, events) => {
      for (const { observedAt, online } of events as unknown as readonly NetworkCounted[]) {
        counts.set(Date.parse(observedAt), online ?? Number.NaN)
      }
    })
  }
  return counts
}
