import { projections } from '@gamenet/projector'
import type { RebuildStatus, VerifyReport } from '@gamenet/projector/rebuild'
import type { Operations } from '../../src/operate/operation.js'
import { rebuild } from '../../src/operate/rebuild/operation.js'
import type { Facts } from './facts.js'
import { chance } from './world.js'

/** Projections whose tables stay empty here: no import is undone, and no title leaves the network. */
const EMPTY_NAMES: ReadonlySet<string> = new Set(['import-retraction', 'title-status'])
/** Rebuilt one after another, each with its dependents. */
export const REBUILT_NAMES: readonly string[] = projections
  .map(({ name }) => name)
  .filter((name) => !EMPTY_NAMES.has(name))
const FROM_LOG_SHARE = 0.25
const OVER: readonly RebuildStatus['state'][] = ['cancelled', 'dropped', 'rolled-back']

type Rebuilder = {
  /** Takes one step; returns false if there was nothing to do. */
  next(round: number): Promise<boolean>
  /** Projections to be rebuilt whose rebuilt tables have not served yet. */
  unserved(): readonly string[]
}

/**
 * Creates a rebuilder, which takes one step of a rebuild at a time: start, verify, swap, sometimes roll back, drop. It reads the
 * state before each step, because the process of the last step may have died.
 */
export function rebuilder({
  projectors,
  facts,
  rebuilt,
  say
}: {
  readonly projectors: readonly Operations[]
  readonly facts: Facts
  /** Projections to be rebuilt before any other. */
  readonly rebuilt: readonly string[]
  readonly say: (sentence: string) => void
}): Rebuilder {
  const served = new Set<string>()
  /** The rebuilds whose tables all had rows when they were compared. */
  const full = new Set<RebuildStatus['id']>()
  const did = (what: 'start' | 'verify' | 'swap' | 'rollback'): true => {
    facts.add({ fact: 'rebuilt', what })
    return true
  }
  const unserved = () => rebuilt.filter((name) => !served.has(name))
  const next = async (round: number): Promise<boolean> => {
    // Any process continues rebuilds that others have started.
    const operations = projectors[round % projectors.length]
    if (operations === undefined) return true
    const all = await operations.run(rebuild.list, {})
    const one = all.find(({ state }) => !OVER.includes(state))
    if (one === undefined) {
      const isFromLog = chance(facts.seed, facts.counts.rebuilds, 302) < FROM_LOG_SHARE
      const left = unserved()
      const among = left.length > 0 ? left : REBUILT_NAMES
      const name = among[facts.counts.rebuilds % among.length] ?? ''
      await operations.run(rebuild.start, { projection: name, isFromLog })
      return did('start')
    }
    const { projection, state } = one
    if (state === 'swapped' && full.has(one.id)) for (const name of one.unit) served.add(name)
    if (state === 'paused' || state === 'failed') await operations.run(rebuild.resume, { projection })
    else if (state === 'filled' && one.verification === null) {
      const report = await operations.run(rebuild.verify, { projection })
      if (report.tables.every(({ liveRows }) => liveRows > 0)) full.add(one.id)
      if (!report.isEqual) say(`the rebuilt tables of ${projection} differ: ${textOf(report)}`)
      return did('verify')
    } else if (state === 'filled') {
      await operations.run(rebuild.swap, { projection, acceptDifferences: one.verification?.isEqual !== true })
      return did('swap')
    } else if (state === 'swapped' && chance(facts.seed, one.id, 301) < 0.5) {
      await operations.run(rebuild.rollback, { projection })
      return did('rollback')
    } else if (state === 'swapped') await operations.run(rebuild.drop, { projection })
    else return false
    return true
  }
  return { next, unserved }
}

function textOf({ differences }: VerifyReport): string {
  return JSON.stringify(differences.slice(0, 2)).slice(0, 1500)
}
