import { randomUUID } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { type ClickHouse, openClickHouseServer, openPinned } from '@gamenet/engines'
import { createReplicated, replicasMissing, replicaUrls, until } from '@gamenet/engines/testing'
import { migrate } from '@gamenet/projector'
import { encodeEvent, instantOf, titleCountTopic, titleTopic } from '@gamenet/schemas'
import { type LogChoice, openLog } from '../../src/stores/log.js'
import { type ServedApi, serveTables } from './api-on-tables.js'
import {
  CannotMeasure,
  type Conditions,
  figure,
  type Measurement,
  quantile,
  type Result,
  scaled
} from './measurement.js'
import { projectorOn } from './projector-on.js'

const TITLES = 200
const ROUNDS = 300
const FIRST_MS = Date.UTC(2026, 0, 1)
const MINUTE_MS = 60_000
const POLL_MS = 2
const PASS_MS_MAX = 60
const ANSWER_MS_MAX = 10
const titleIds = Array.from({ length: TITLES }, (_, i) => (0x4d53_0000 + i * 37).toString(16))

/** One of the replicas as a plain server, and all of them, do the same in turn. */
export const replicas: Measurement = {
  name: 'replicas',
  claim: 'replicas delay loaded events by at most 60 ms, and new answers by at most 10 ms',
  async run(conditions) {
    const missing = replicasMissing()
    if (missing !== false) throw new CannotMeasure(missing)
    const database = `gamenet_${randomUUID().replaceAll('-', '')}`
    const [first = ''] = replicaUrls()
    const servers = replicaUrls().map((url) => openClickHouseServer({ url }))
    await servers[0]?.control.execute(`CREATE DATABASE ${database}_plain`)
    const sides = await Promise.all([
      openSide(conditions, [new URL(`${database}_plain`, first).href]),
      openSide(conditions, await createReplicated(database))
    ])
    try {
      return await compared(sides, scaled(ROUNDS, conditions.scale, 30))
    } finally {
      for (const side of sides) await side.close()
      for (const { control, close } of servers) {
        for (const name of [database, `${database}_plain`]) await control.execute(`DROP DATABASE IF EXISTS ${name}`)
        await close()
      }
    }
  }
}

type Side = {
  /** Returns the milliseconds from the append of a minute's counts to their rows in the hours. */
  load(minute: number): Promise<number>
  readonly api: ServedApi
  close(): Promise<void>
}

async function openSide({ directory }: Conditions, urls: readonly string[]): Promise<Side> {
  const choice: LogChoice = { engine: 'lmdb', path: await mkdtemp(join(directory, 'log-')), epoch: 0 }
  const log = await openLog(choice, 'bench')
  const tables = openPinned({ urls, beforeWrite: () => undefined, warn: () => undefined })
  await migrate(tables.control)
  const projector = projectorOn(tables, choice)
  projector.start()
  const provenance = { source: '/bench' }
  const titles = titleIds.map((titleId) =>
    encodeEvent(titleTopic, { titleId, observedAt: instantOf(FIRST_MS), name: `Game ${titleId}` }, provenance)
  )
  await log.append(titleTopic.name, titles)
  const api = await serveTables(tables)
  return {
    async load(minute) {
      const observedAt = instantOf(FIRST_MS + minute * MINUTE_MS)
      const counts = titleIds.map((titleId, n) => ({ titleId, observedAt, online: (minute * 7 + n * 13) % 400 }))
      const messages = counts.map((count) => encodeEvent(titleCountTopic, count, provenance))
      const begun = performance.now()
      await log.append(titleCountTopic.name, messages)
      await untilSamples(tables, TITLES * (minute + 1))
      return performance.now() - begun
    },
    api,
    async close() {
      await api.close()
      await projector.stop()
      await log.close()
      await tables.close()
    }
  }
}

async function untilSamples({ control }: ClickHouse, samples: number): Promise<void> {
  await until(async () => {
    const [row] = await control.rows('SELECT sum(h.samples) AS samples FROM title_count_hour__0 AS h FINAL')
    return Number(row?.samples) === samples
  }, POLL_MS)
}

async function compared(sides: readonly Side[], rounds: number): Promise<Result[]> {
  const times = sides.map(() => ({ loaded: [] as number[], answered: [] as number[], ready: [] as number[] }))
  for (let minute = 0; minute < rounds; minute += 1) {
    for (const [n, { load }] of sides.entries()) times[n]?.loaded.push(await load(minute))
  }
  for (const { api } of sides) await api.refresh()
  for (let round = 0; round < rounds; round += 1) {
    const from = instantOf(FIRST_MS - (round + 1) * MINUTE_MS)
    const to = instantOf(FIRST_MS + rounds * MINUTE_MS)
    const path = `/api/title/${titleIds[round % TITLES]}/online-users/history?from=${from}&to=${to}&resolution=3600`
    for (const [n, { api }] of sides.entries()) {
      times[n]?.answered.push((await api.get(path)).ms)
      times[n]?.ready.push((await api.get(path)).ms)
    }
  }
  return [
    result(times, 'loaded', 'counts appended → in the hours, longer by', PASS_MS_MAX),
    result(times, 'answered', 'a new answer, longer by', ANSWER_MS_MAX),
    result(times, 'ready', 'a ready answer, longer by', 1)
  ]
}

/** Compares the medians of both sides. */
function result<Name extends string>(
  times: readonly Readonly<Record<Name, readonly number[]>>[],
  name: Name,
  what: string,
  value: number
): Result {
  const [server = 0, pinned = 0] = times.map((each) => quantile(each[name], 0.5))
  const target = { bound: 'at most', value, of: 'measured' } as const
  return {
    what,
    measured: pinned - server,
    unit: 'ms',
    target,
    detail: `medians ${figure(server)} and ${figure(pinned)} ms`
  }
}
