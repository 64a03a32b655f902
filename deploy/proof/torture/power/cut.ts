import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { withTimeout } from '@gamenet/schemas'
import type { DemoAuth } from '../../../demo/auth/server.js'
import { restore } from '../../../src/backup/restore.js'
import { type Environment, type Launched, launchGamenet, type Running } from '../../../test/service/gamenet.js'
import { bringToAnEnd, comparedWhenStopped, scrapedOften } from '../embedded.js'
import type { Facts } from '../facts.js'
import { type Load, startLoad } from '../load.js'
import { stopWell } from '../one-process.js'
import { startSteppingUpstream } from '../upstream.js'
import { chance, wholeChance } from '../world.js'
import { type Activity, broken, type Promised, reach } from './activities.js'
import type { Disk } from './disk.js'
import { contentsUnder, flushHalf, tear } from './writeback.js'

/** What one cut is like; all of it follows from a seed and its number, but what the service does until then. */
export type Plan = {
  readonly seed: number
  readonly number: number
  readonly activity: Activity
  /** When a random half of the directories is flushed: a little before the cut, at the cut, or not. */
  readonly flushed: 'before' | 'at' | 'not'
  /** Of what size the parts are in which the last writes are torn; 0 for whole pages. */
  readonly tornBytes: 0 | 512 | 4096
  /** Whether the power goes once more during the start that follows. */
  readonly isTwice: boolean
}

export type Place = {
  readonly disk: Disk
  readonly facts: Facts
  readonly auth: DemoAuth
  readonly ports: { readonly api: number; readonly operator: number }
  /** Not on the disk that is cut. */
  readonly directory: string
  readonly calm: number
}

/** The result of one cut. */
export type Outcome = {
  /** Whether the service started on what was left. */
  readonly isStarted: boolean
  /** Each a sentence. */
  readonly differences: readonly string[]
  readonly tornFiles: number
  /** Parts that ClickHouse has put aside. */
  readonly detached: number
  /** How long it lived, started, came to rest, and was compared. */
  readonly ms: { readonly life: number; readonly start: number; readonly rest: number; readonly compare: number }
}

const FIRST_START_MS = 6000
const START_MS = 4000
const START_MS_MAX = 120_000
const STANDSTILL_MS_MAX = 5000
const LOOK_MS = 5
const LOG_CHARACTERS = 3000

export function planOf(seed: number, number: number, activity: Activity): Plan {
  const [how, torn] = [chance(seed, number, 401), wholeChance(6, seed, number, 402)]
  const flushed = how < 0.4 ? 'before' : how < 0.8 ? 'at' : 'not'
  return {
    seed,
    number,
    activity,
    flushed,
    tornBytes: torn === 0 ? 512 : torn === 1 ? 4096 : 0,
    isTwice: chance(seed, number, 403) < 0.25
  }
}

/** Cuts the power of a service under load, starts it again, and compares all that it holds; its disk is mounted before and after. */
export async function cutOnce(place: Place, plan: Plan): Promise<Outcome> {
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
  const promised: Promised = {}
  const forgiven = new Set<string>()
  const ms = { life: 0, start: 0, rest: 0, compare: 0 }
  let began = performance.now()
  const took = (what: keyof typeof ms): void => {
    const now = performance.now()
    ms[what] = Math.round(now - began)
    began = now
  }
  try {
    const tornFiles = await liveUntilCut({ ...place, plan, load, environment, promised, forgiven })
    took('life')
    const service = await started(place, environment)
    took('start')
    const outcome = { tornFiles, ms }
    if (typeof service === 'string') return { ...outcome, isStarted: false, differences: [service], detached: 0 }
    const detached = await detachedParts(environment.DATA_DIR)
    const found: string[] = []
    try {
      const ended = diedByItself(service)
      await Promise.race([ended, load.drain()])
      found.push(...(await Promise.race([ended, broken(promised, service)])))
      upstream.freeze()
      await Promise.race([ended, bringToAnEnd(service)])
      await stopWell(service)
    } finally {
      written(place, service)
      await service.kill()
    }
    took('rest')
    found.push(...load.wrong.filter((sentence) => !forgiven.has(sentence)), ...(await brokenBackup(place, promised)))
    found.push(...(await comparedWhenStopped(environment.DATA_DIR, facts)))
    took('compare')
    return { ...outcome, isStarted: true, differences: found, detached }
  } finally {
    await load.stop()
    await upstream.close()
  }
}

type Living = Place & {
  readonly plan: Plan
  readonly load: Load
  readonly environment: Environment & { readonly DATA_DIR: string }
  readonly promised: Promised
  readonly forgiven: Set<string>
}

async function liveUntilCut(living: Living): Promise<number> {
  const { disk, plan, load, auth, environment, promised } = living
  const numbers = [plan.seed, plan.number, 410]
  let life = launchGamenet(environment)
  try {
    if (plan.activity === 'migration') await pause(chance(...numbers, 1) * FIRST_START_MS)
    else {
      const service = await life.listening
      const backups = join(disk.path, 'backups')
      await mkdir(backups, { recursive: true })
      await reach(plan.activity, { service, load, auth, numbers, backups, promised })
      if (plan.activity === 'restart' && chance(...numbers, 5) < 0.6) {
        // It got a stop request before, and a second signal would kill it.
        if (life.process.exitCode === null) await once(life.process, 'exit')
        written(living, life)
        life = launchGamenet(environment)
        await pause(chance(...numbers, 6) * START_MS)
      }
    }
    const torn = await cut(living, life, 0)
    if (!plan.isTwice) return torn
    written(living, life)
    life = launchGamenet(environment)
    await pause(chance(...numbers, 7) * START_MS)
    return torn + (await cut(living, life, 1))
  } finally {
    written(living, life)
    await life.kill()
  }
}

/**
 * With torn files, the process is stopped first, and its last writes are between the cut and the earlier ones. Otherwise it is
 * running: requests that wait for the disk never return.
 */
async function cut({ disk, plan, load, forgiven }: Living, life: Launched, time: number): Promise<number> {
  const numbers = [plan.seed, plan.number, 420, time]
  if (plan.flushed === 'before') {
    await flushHalf(disk, ...numbers)
    await pause(chance(...numbers, 1) * 300)
  }
  if (plan.tornBytes > 0 || chance(...numbers, 2) < 0.5) await standStill(life)
  if (plan.flushed === 'at') await flushHalf(disk, ...numbers)
  const before = plan.tornBytes === 0 ? undefined : contentsUnder(disk)
  const code = life.process.exitCode
  if (code !== null && code !== 0) throw new Error(`The service ended by itself: ${tailOf(life)}`)
  const said = load.wrong.length
  disk.cut()
  await life.kill()
  await turn()
  // Without its disk it may print anything until its end.
  for (const sentence of load.wrong.slice(said)) forgiven.add(sentence)
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

async function standStill({ process: { pid, exitCode } }: Launched): Promise<void> {
  if (pid === undefined || exitCode !== null) return
  process.kill(pid, 'SIGSTOP')
  const tasks = `/proc/${pid}/task`
  const until = performance.now() + STANDSTILL_MS_MAX
  for (let running = true; running; ) {
    const states = await Promise.all(
      (await readdir(tasks)).map((task) => readFile(join(tasks, task, 'stat'), 'utf8').catch(() => ') T'))
    )
    running = states.some((stat) => !/\) [TtZX]/.test(stat))
    if (running && performance.now() > until) throw new Error(`The service does not stop: ${states.join('')}`)
    if (running) await pause(LOOK_MS)
  }
}

/** Why it does not start is given. */
async function started(place: Place, environment: Environment): Promise<Running | string> {
  const life = launchGamenet(environment)
  try {
    return await withTimeout(life.listening, START_MS_MAX, () => {
      throw new Error(`it did not start within ${START_MS_MAX} ms: ${life.stderr()}`)
    })
  } catch (error) {
    written(place, life)
    await life.kill()
    return `NOT STARTED: ${String(error).slice(-LOG_CHARACTERS)}`
  }
}

async function diedByItself(service: Running): Promise<never> {
  await new Promise((resolve) => service.process.once('exit', resolve))
  throw new Error(`The service ended by itself: ${tailOf(service)}`)
}

function written({ directory }: Place, life: Pick<Launched, 'stderr'>): void {
  appendFileSync(join(directory, 'service.log'), life.stderr())
}

/** Each file of a backup is compared with its hash. */
async function brokenBackup({ disk, directory }: Place, { backup }: Promised): Promise<string[]> {
  const dataDirectory = join(directory, 'restored')
  const { signal } = new AbortController()
  try {
    if (backup !== undefined)
      await restore({ backup, dataDirectory, ledger: undefined, onProgress: () => undefined, signal })
    return []
  } catch (error) {
    return [`The backup was acknowledged, and is not whole: ${error}`]
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
