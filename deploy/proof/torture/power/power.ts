import { appendFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '@gamenet/engines/testing'
import { Mutex } from '@gamenet/schemas'
import { z } from 'zod'
import { type DemoAuth, startDemoAuth } from '../../../demo/auth/server.js'
import { createWorld } from '../../../demo/network/world.js'
import { openFacts } from '../facts.js'
import { wholeChance } from '../world.js'
import { type Activity, activities } from './activities.js'
import { cutOnce, type Outcome, type Place, type Plan, planOf, recover, type State } from './cut.js'
import { makeDisk } from './disk.js'

/*
 * cut    one loss of power, and the start after it
 * state  a copy of the disk as a cut at an earlier instant of the same life would have left it, and the start on it
 * life   successive cuts of one disk: one during each activity, the first during the first start
 */

const Cut = z.object({
  life: z.int(),
  number: z.int(),
  /** Number of the state before this cut; 0 for the cut itself. */
  state: z.int().default(0),
  seed: z.int(),
  activity: z.enum(activities),
  flushed: z.string(),
  tornBytes: z.int(),
  isTwice: z.boolean(),
  tornFiles: z.int(),
  detached: z.int(),
  isStarted: z.boolean(),
  ms: z.record(z.string(), z.int()),
  seconds: z.number(),
  differences: z.array(z.string())
})
export type Cut = z.infer<typeof Cut>

export type Power = {
  /** The directory for all data, also for the next run. */
  readonly directory: string
  readonly cuts: number
  /** Number of states to recover for each cut; they count as cuts. */
  readonly states?: number
  /** Seed of the first life; those of the others follow from it. */
  readonly seed: number
  /** The activities of each life, in order; else one of each, in random order. */
  readonly order?: readonly Activity[]
  /** Factor of the pauses of users, readers and scrapers relative to full load. */
  readonly calm?: number
  readonly note: (sentence: string) => void
}

const SEEDS = 2 ** 31
const NOON = Date.UTC(2026, 10, 21, 12)
const IMAGE_MEBIBYTES = 4096
/** A start waits for half of its time, so two run concurrently. */
const AT_ONCE = 2
const OUTPUT_CHARACTERS_MAX = 2000

/** Makes `cuts` further cuts; returns all cuts of the directory, including those of earlier runs. */
export async function cutPower(power: Power): Promise<Cut[]> {
  const { directory, note } = power
  mkdirSync(directory, { recursive: true })
  const file = join(directory, 'cuts.ndjson')
  const cuts = readCuts(file)
  const network = { url: 'http://network.example', world: createWorld(7), instantShown: () => NOON }
  const auth = await startDemoAuth({ network })
  try {
    let { seed } = power
    for (const until = cuts.length + power.cuts; cuts.length < until; seed = wholeChance(SEEDS, seed, 400)) {
      // An interrupted cut of an earlier run is not resumed.
      const life = (cuts.at(-1)?.life ?? 0) + 1
      for await (const cut of cutsOfLife(power, { auth, seed, life, most: until - cuts.length })) {
        appendFileSync(file, `${JSON.stringify(cut)}\n`)
        cuts.push(cut)
        note(textOf(cut))
      }
    }
    return cuts
  } finally {
    await auth.close()
  }
}

type Life = { readonly auth: DemoAuth; readonly seed: number; readonly life: number; readonly most: number }

async function* cutsOfLife(power: Power, { auth, seed, life, most }: Life): AsyncIterable<Cut> {
  const directory = join(power.directory, `life-${life}`)
  const disk = makeDisk(directory, { mebibytes: IMAGE_MEBIBYTES })
  const ports = { api: await freePort(), operator: await freePort() }
  const place = { disk, auth, ports, directory, facts: openFacts(directory, seed, 'embedded'), calm: power.calm ?? 1 }
  const order = (power.order ?? shuffled(seed)).slice(0, Math.ceil(most / (1 + (power.states ?? 0))))
  disk.mount()
  try {
    for (const [number, activity] of order.entries()) {
      const found: Cut[] = []
      for await (const cut of cutsOfActivity(power, { place, life, number, seed, activity })) {
        found.push(cut)
        yield cut
      }
      if (found.some(({ differences }) => differences.length > 0)) return
    }
  } finally {
    disk.unmount()
  }
  rmSync(directory, { recursive: true })
}

type Tried = Pick<Cut, 'life' | 'number' | 'seed' | 'activity'>

/** The cut, then the states before it. */
async function* cutsOfActivity(
  { states = 0 }: Power,
  { place, ...which }: Tried & { place: Place }
): AsyncIterable<Cut> {
  const kept: State[] = []
  const plan = planOf(which.seed, which.number, which.activity, states)
  yield await tried({ ...which, state: 0 }, plan, () => cutOnce(place, plan, (state) => kept.push(state)))
  const compared = new Mutex()
  while (kept.length > 0) {
    const recovered = kept.splice(0, AT_ONCE).map(async (state): Promise<Cut> => {
      const { plan, directory } = state
      const cut = await tried({ ...which, state: state.number }, plan, () => recover(place.auth, state, compared))
      if (cut.differences.length === 0) rmSync(directory, { recursive: true })
      return cut
    })
    yield* await Promise.all(recovered)
  }
}

/** Runs a cut; a failure counts as a difference. */
async function tried(which: Tried & Pick<Cut, 'state'>, plan: Plan, cut: () => Promise<Outcome>): Promise<Cut> {
  const began = performance.now()
  const { flushed, tornBytes, isTwice } = plan
  const outcome = await cut().catch((error: unknown) => ({
    tornFiles: 0,
    detached: 0,
    isStarted: true,
    ms: {},
    differences: [error instanceof Error ? (error.stack ?? error.message) : String(error)]
  }))
  return {
    ...which,
    ...outcome,
    flushed,
    tornBytes,
    isTwice,
    seconds: (performance.now() - began) / 1000,
    differences: [...outcome.differences]
  }
}

/** The first activity of a life is its first start. */
function shuffled(seed: number): Activity[] {
  const [first, ...rest] = activities
  const order: Activity[] = [first]
  while (rest.length > 0) order.push(...rest.splice(wholeChance(rest.length, seed, rest.length, 403), 1))
  return order
}

function readCuts(file: string): Cut[] {
  try {
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => Cut.parse(JSON.parse(line)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

export function textOf(cut: Cut): string {
  const { life, number, state, seed, activity, flushed, tornBytes, tornFiles, isTwice, detached, ms, seconds } = cut
  const { differences } = cut
  const which = state === 0 ? `cut ${number}` : `state ${state} before cut ${number}`
  const torn = tornBytes === 0 ? '' : `, ${tornFiles} files torn by ${tornBytes} B`
  return [
    `${which} of life ${life}, seed ${seed}: ${activity}${isTwice ? ' and the start after it' : ''}, half flushed: ${flushed}${torn}; ${detached} parts detached; ms ${JSON.stringify(ms)}, all ${Math.round(seconds)} s: ${differences.length === 0 ? 'nothing lost' : `${differences.length} DIFFERENCES`}`,
    ...differences.map((difference) => `  ${difference.slice(0, OUTPUT_CHARACTERS_MAX)}`)
  ].join('\n')
}

/** Returns the number of cuts of each kind, and of those that lost something. */
export function tableOf(cuts: readonly Cut[]): string {
  const line = (what: string, these: readonly Cut[]): string => {
    const wrong = these.filter(({ differences }) => differences.length > 0)
    const unstarted = wrong.filter(({ isStarted }) => !isStarted)
    return `${what}: ${these.length} cuts, ${wrong.length} with differences, ${unstarted.length} without a start`
  }
  return [
    ...activities.map((activity) =>
      line(
        activity,
        cuts.filter((cut) => cut.activity === activity)
      )
    ),
    line(
      'torn writes',
      cuts.filter(({ tornBytes }) => tornBytes > 0)
    ),
    line(
      'with a second cut during the next start',
      cuts.filter(({ isTwice }) => isTwice)
    ),
    line(
      'states recovered from a copy',
      cuts.filter(({ state }) => state > 0)
    ),
    line('all', cuts)
  ].join('\n')
}
