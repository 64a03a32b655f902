import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { type Mutex, withTimeout } from '@gamenet/schemas'
import type { DemoAuth } from '../../../demo/auth/server.js'
import { restore } from '../../../src/operate/restore/restore.js'
import {
  type Environment,
  type Launched,
  launchGamenet,
  ON_REQUEST,
  type Running
} from '../../../test/service/gamenet.js'
import { comparedWhenStopped, scrapedOften, scrapeToEnd, untilCaughtUp } from '../embedded.js'
import { type Facts, openFacts } from '../facts.js'
import { type Load, startLoad } from '../load.js'
import { stopCleanly } from '../one-process.js'
import { startSteppingUpstream } from '../upstream.js'
import { chance, wholeChance } from '../world.js'
import { type Activity, beginActivity, broken, type Promised } from './activities.js'
import type { Disk } from './disk.js'
import { contentsUnder, flushHalf, tear } from './writeback.js'

/** The plan of one cut. It follows from the seed and the number; the work of the service until the cut does not. */
export type Plan = {
  readonly seed: number
  readonly number: number
  readonly activity: Activity
  /** When a random half of the directories is flushed: shortly before the cut, at the cut, or not. */
  readonly flushed: 'before' | 'at' | 'not'
  /** Unit in bytes in which the last writes are torn; 0 for whole pages. */
  readonly tornBytes: 0 | 512 | 4096
  /** Whether the power fails again during the next start. */
  readonly isTwice: boolean
  /** Number of earlier instants of the same life at which the disk is copied. */
  readonly states: number
}

/** A copy of the disk as a cut at that instant would have left it, with the acknowledgements until then. */
export type State = {
  /** 1, 2, … among the states before one cut. */
  readonly number: number
  readonly plan: Plan
  readonly disk: Disk
  readonly directory: string
  readonly promised: Promised
  readonly tornFiles: number
}

export type Place = {
  readonly disk: Disk
  readonly facts: Facts
  readonly auth: DemoAuth
  readonly ports: { readonly api: number; readonly operator: number }
  /** A directory that is not on the disk that is cut. */
  readonly directory: string
  readonly calm: number
}

/** The result of one cut. */
export type Outcome = {
  /** Whether the service started after the cut. */
  readonly isStarted: boolean
  /** One sentence each. */
  readonly differences: readonly string[]
  readonly tornFiles: number
  /** Parts that ClickHouse has detached. */
  readonly detached: number
  /** Durations of the life, the start, the wait until idle, and the comparison. */
  readonly ms: { readonly life: number; readonly start: number; readonly rest: number; readonly compare: number }
}

const FIRST_START_MS = 6000
const START_MS = 4000
const START_MS_MAX = 120_000
const SUSPEND_MS_MAX = 5000
const LOOK_MS = 5
const LOG_CHARACTERS = 3000
/** Above the number of cuts of a life. */
const STATE_NUMBERS = 1000
/** The plan of a cut, or of a state before it. */
export function planOf(seed: number, number: number, activity: Activity, states = 0): Plan {
  const [how, torn] = [chance(seed, number, 401), wholeChance(6, seed, number, 402)]
  const flushed = how < 0.4 ? 'before' : how < 0.8 ? 'at' : 'not'
  return {
    seed,
    number,
    activity,
    flushed,
    tornBytes: torn === 0 ? 512 : torn === 1 ? 4096 : 0,
    isTwice: chance(seed, number, 403) < 0.25,
    states
  }
}

/**
 * Cuts the power of a service under load, starts it again, and compares all its data. The disk is mounted before and after. Each
 * state before the cut is passed to `keep`, for {@link recover}.
 */
export async function cutOnce(place: Place, plan: Plan, keep: (state: State) => void = () => {}): Promise<Outcome> {
  const { facts, auth, ports, calm } = place
  const upstream = await startSteppingUpstream(facts)
  const [apiUrl, operatorUrl] = [`http://127.0.0.1:${ports.api}`, `http://127.0.0.1:${ports.operator}`]
  const load = await startLoad({
    facts,
    auth,
    operatorUrl,
    apiUrls: [apiUrl],
    projectorUrls: [operatorUrl],
    rebuilt: [],
    calm
  })
  const environment = {
    ...scrapedOften(calm),
    DATA_DIR: join(place.disk.path, 'data'),
    PORT: `${ports.api}`,
    OPERATOR_PORT: `${ports.operator}`,
    UPSTREAM_URL: upstream.url,
    AUTH_URL: auth.url
  }
  const promised: Promised = { backups: 0, hasBackup: false, erased: [] }
  const ignored = new Set<string>()
  const { ms, took } = stopwatch()
  try {
    const tornFiles = await liveUntilCut({ ...place, plan, keep, load, environment, promised, ignored })
    took('life')
    const service = await started(place, environment)
    took('start')
    const found: string[] = []
    const detached = await rested(place, service, environment.DATA_DIR, async (alive) => {
      await load.drain()
      found.push(...(await broken(promised, alive)))
      upstream.freeze()
      await scrapeToEnd(alive)
    })
    took('rest')
    found.push(...load.wrong.filter((sentence) => !ignored.has(sentence)), ...(await brokenBackup(place, promised)))
    found.push(...(await comparedWhenStopped(environment.DATA_DIR, facts)))
    took('compare')
    return { tornFiles, ms, isStarted: true, differences: found, detached }
  } catch (error) {
    if (error instanceof NotStarted) return notStarted(error, ms)
    throw error
  } finally {
    await load.stop()
    await upstream.close()
  }
}

/**
 * Starts a service on a state, without load, and compares all its data. Comparisons run one at a time. The disk is unmounted before and after.
 */
export async function recover(
  auth: DemoAuth,
  { disk, directory, promised, tornFiles, plan }: State,
  compared: Mutex
): Promise<Outcome> {
  const { ms, took } = stopwatch()
  const facts = openFacts(directory, plan.seed, 'embedded')
  const place = { disk, directory }
  const data = join(disk.path, 'data')
  const environment = { ...ON_REQUEST, DATA_DIR: data, AUTH_URL: auth.url }
  disk.mount()
  try {
    const service = await started(place, environment)
    took('start')
    const found: string[] = []
    const detached = await rested(place, service, data, async (alive) => {
      found.push(...(await broken(promised, alive)))
      await untilCaughtUp(alive)
    })
    took('rest')
    found.push(...(await brokenBackup(place, promised)))
    found.push(...(await compared.run(() => comparedWhenStopped(data, facts))))
    took('compare')
    return { tornFiles, ms, isStarted: true, differences: found, detached }
  } catch (error) {
    if (error instanceof NotStarted) return notStarted(error, ms)
    throw error
  } finally {
    disk.unmount()
  }
}

function stopwatch() {
  const ms = { life: 0, start: 0, rest: 0, compare: 0 }
  let began = performance.now()
  const took = (what: keyof typeof ms): void => {
    const now = performance.now()
    ms[what] = Math.round(now - began)
    began = now
  }
  return { ms, took }
}

/** Waits until a service is idle and stops it; returns the number of parts that were detached after its start. */
async function rested(
  place: DiskPlace,
  service: Running,
  data: string,
  rest: (service: Running) => Promise<void>
): Promise<number> {
  const detached = await detachedParts(data)
  try {
    await Promise.race([diedByItself(service), rest(service)])
    await stopCleanly(service)
    return detached
  } finally {
    written(place, service)
    await service.kill()
  }
}

type Living = Place & {
  readonly plan: Plan
  readonly keep: (state: State) => void
  readonly load: Load
  readonly environment: Environment & { readonly DATA_DIR: string }
  readonly promised: Promised
  readonly ignored: Set<string>
}

async function liveUntilCut(living: Living): Promise<number> {
  const { plan, environment, keep } = living
  let life = launchGamenet(environment)
  try {
    for (let state = 1; state <= plan.states; state += 1) {
      life = await nextInstant(living, life, state)
      keep(await captured(living, life, state))
    }
    life = await nextInstant(living, life, 0)
    const torn = await cut(living, life, 0)
    if (!plan.isTwice) return torn
    written(living, life)
    life = launchGamenet(environment)
    await pause(chance(plan.seed, plan.number, 410, 7) * START_MS)
    return torn + (await cut(living, life, 1))
  } finally {
    written(living, life)
    await life.kill()
  }
}

/** Lets the service run until the next instant of a cut or a state; returns the process that runs then. */
async function nextInstant(living: Living, before: Launched, state: number): Promise<Launched> {
  const { disk, plan, load, auth, promised } = living
  const numbers = [plan.seed, plan.number, 410, state]
  if (plan.activity === 'migration') {
    await pause((chance(...numbers, 1) * FIRST_START_MS) / (plan.states + 1))
    return before
  }
  const life = before.process.killed ? await launchedAgain(living, before) : before
  const service = await life.listening
  const backup = join(disk.path, 'backups', 'backup')
  await beginActivity(plan.activity, { service, load, auth, numbers, backup, promised })
  if (plan.activity !== 'restart' || chance(...numbers, 5) >= 0.6) return life
  const again = await launchedAgain(living, life)
  await pause(chance(...numbers, 6) * START_MS)
  return again
}

/** Waits for the end of a service with a pending stop request, which a second signal would kill, and starts it again. */
async function launchedAgain(living: Living, life: Launched): Promise<Launched> {
  if (life.isAlive()) await once(life.process, 'exit')
  written(living, life)
  return launchGamenet(living.environment)
}

async function captured(living: Living, life: Launched, state: number): Promise<State> {
  const { disk, facts, promised, plan: whole } = living
  const plan = { ...planOf(whole.seed, whole.number + STATE_NUMBERS * state, whole.activity), isTwice: false }
  const numbers = [plan.seed, plan.number, 420]
  const directory = join(living.directory, `state-${whole.number}-${state}`)
  if (plan.flushed === 'before') {
    await flushHalf(disk, ...numbers)
    await pause(chance(...numbers, 1) * 300)
  }
  await suspendProcess(life)
  if (plan.flushed === 'at') await flushHalf(disk, ...numbers)
  facts.copyTo(directory)
  const promisedUntilNow = structuredClone(promised)
  const copy = disk.copyTo(directory)
  const before = plan.tornBytes === 0 ? undefined : contentsUnder(disk)
  resumeProcess(life)
  copy.mount()
  const tornFiles = before === undefined ? 0 : tear(copy.path, before, plan.tornBytes, ...numbers)
  copy.unmount()
  copy.keep()
  return { number: state, plan, disk: copy, directory, promised: promisedUntilNow, tornFiles }
}

/**
 * Cuts the power, and tears files if planned; returns the number of torn files. For torn files the process is suspended first, so
 * that the unflushed contents are known. Otherwise it may be running: its requests to the disk never return.
 */
async function cut({ disk, plan, load, ignored }: Living, life: Launched, time: number): Promise<number> {
  const numbers = [plan.seed, plan.number, 420, time]
  if (plan.flushed === 'before') {
    await flushHalf(disk, ...numbers)
    await pause(chance(...numbers, 1) * 300)
  }
  if (plan.tornBytes > 0 || chance(...numbers, 2) < 0.5) await suspendProcess(life)
  if (plan.flushed === 'at') await flushHalf(disk, ...numbers)
  const before = plan.tornBytes === 0 ? undefined : contentsUnder(disk)
  const code = life.process.exitCode
  if (code !== null && code !== 0) throw new Error(`The service ended by itself: ${tailOf(life)}`)
  const said = load.wrong.length
  disk.cut()
  await life.kill()
  await turn()
  // Wrong answers after the cut have no meaning.
  for (const sentence of load.wrong.slice(said)) ignored.add(sentence)
  disk.unmount()
  disk.mount()
  const torn = before === undefined ? 0 : tear(disk.path, before, plan.tornBytes, ...numbers)
  disk.unmount()
  disk.keep()
  disk.mount()
  return torn
}

function tailOf(life: Pick<Launched, 'stderr'>): string {
  return life.stderr().slice(-LOG_CHARACTERS)
}

function resumeProcess({ process: { pid }, isAlive }: Launched): void {
  if (pid !== undefined && isAlive()) process.kill(pid, 'SIGCONT')
}

async function suspendProcess({ process: { pid }, isAlive }: Launched): Promise<void> {
  if (pid === undefined || !isAlive()) return
  process.kill(pid, 'SIGSTOP')
  const tasks = `/proc/${pid}/task`
  const until = performance.now() + SUSPEND_MS_MAX
  for (let running = true; running; ) {
    const states = await Promise.all(
      // The process may have ended meanwhile.
      (await readdir(tasks).catch(() => [])).map((task) =>
        readFile(join(tasks, task, 'stat'), 'utf8').catch(() => ') T')
      )
    )
    running = states.some((stat) => !/\) [TtZX]/.test(stat))
    if (running && performance.now() > until) throw new Error(`The service does not stop: ${states.join('')}`)
    if (running) await pause(LOOK_MS)
  }
}

class NotStarted extends Error {}

function notStarted({ message }: NotStarted, ms: Outcome['ms']): Outcome {
  return { isStarted: false, differences: [message], tornFiles: 0, detached: 0, ms }
}

type DiskPlace = Pick<Place, 'disk' | 'directory'>

async function started(place: DiskPlace, environment: Environment): Promise<Running> {
  const life = launchGamenet(environment)
  try {
    return await withTimeout(life.listening, START_MS_MAX, () => {
      throw new Error(`it did not start within ${START_MS_MAX} ms: ${life.stderr()}`)
    })
  } catch (error) {
    written(place, life)
    await life.kill()
    throw new NotStarted(`NOT STARTED: ${String(error).slice(-LOG_CHARACTERS)}`)
  }
}

async function diedByItself(service: Running): Promise<never> {
  await new Promise((resolve) => service.process.once('exit', resolve))
  throw new Error(`The service ended by itself: ${tailOf(service)}`)
}

function written({ directory }: DiskPlace, life: Pick<Launched, 'stderr'>): void {
  appendFileSync(join(directory, 'service.log'), life.stderr())
}

/** Restores an acknowledged backup, which compares each file with its hash; returns the failure. */
async function brokenBackup({ disk, directory }: DiskPlace, { hasBackup }: Promised): Promise<string[]> {
  const dataDirectory = join(directory, 'restored')
  const { signal } = new AbortController()
  try {
    const backup = join(disk.path, 'backups', 'backup')
    if (hasBackup) await restore({ backup, dataDirectory, ledger: undefined, onProgress: () => undefined, signal })
    return []
  } catch (error) {
    return [`The backup was acknowledged but is incomplete: ${error}`]
  } finally {
    await rm(dataDirectory, { recursive: true, force: true })
    await rm(join(disk.path, 'backups'), { recursive: true, force: true })
  }
}

async function detachedParts(data: string): Promise<number> {
  const store = join(data, 'tables', 'store')
  let parts = 0
  for (const prefix of await readdir(store).catch(() => []))
    for (const table of await readdir(join(store, prefix)))
      parts += (await readdir(join(store, prefix, table, 'detached')).catch(() => [])).length
  return parts
}
