import type { RebuildStatus, VerifyReport } from '@gamenet/projector/rebuild'
import type { Operations } from '../src/operator/operations.js'
import type { Facts } from './facts.js'
import { chance } from './world.js'

/** Rebuilt in turn: SQL, rollups, folds and what hangs on them, sealed events. */
const PROJECTIONS = ['title-count', 'leaderboard-history', 'match-list', 'presence', 'rating', 'network-count'] as const
const FROM_LOG_SHARE = 0.25
const OVER: readonly RebuildStatus['state'][] = ['cancelled', 'dropped', 'rolled-back']

/**
 * One step at a time of rebuilds that follow one another: start, verify, swap, take back or not, drop. It looks anew each
 * time, for whoever it asked may have died. Gives whether something was done.
 */
export function rebuilder(
  projectors: readonly Pick<Operations, 'rebuilds'>[],
  facts: Facts,
  say: (sentence: string) => void
): (round: number) => Promise<boolean> {
  const did = (what: 'start' | 'verify' | 'swap' | 'rollback'): true => {
    facts.add({ fact: 'rebuilt', what })
    return true
  }
  return async (round) => {
    // Whoever is asked goes on with what the others have begun.
    const { rebuilds } = projectors[round % projectors.length] ?? {}
    if (rebuilds === undefined) return true
    const all = await rebuilds.list()
    const one = all.find(({ state }) => !OVER.includes(state))
    if (one === undefined) {
      const isFromLog = chance(facts.seed, facts.counts.rebuilds, 302) < FROM_LOG_SHARE
      await rebuilds.start(PROJECTIONS[facts.counts.rebuilds % PROJECTIONS.length] ?? '', { isFromLog })
      return did('start')
    }
    const { projection, state } = one
    if (state === 'paused' || state === 'failed') await rebuilds.resume(projection)
    else if (state === 'filled' && one.verification === null) {
      const report = await rebuilds.verify(projection)
      if (!report.isEqual) say(`rebuilt, ${projection} differs: ${textOf(report)}`)
      return did('verify')
    } else if (state === 'filled') {
      await rebuilds.swap(projection, { acceptDifferences: one.verification?.isEqual !== true })
      return did('swap')
    } else if (state === 'swapped' && chance(facts.seed, one.id, 301) < 0.5) {
      await rebuilds.rollback(projection)
      return did('rollback')
    } else if (state === 'swapped') await rebuilds.drop(projection)
    else return false
    return true
  }
}

function textOf({ differences }: VerifyReport): string {
  return JSON.stringify(differences.slice(0, 2)).slice(0, 1500)
}
