import { chance, wholeChance } from './world.js'

/** The moment at which a running or starting process is killed. It follows from the seed and the number of the kill. */
export type Moment =
  /** During its start, after a share of the usual time. */
  | { readonly at: 'start'; readonly share: number }
  /** At any time of its work. */
  | { readonly at: 'any'; readonly afterMs: number }
  /** At an acknowledgement. */
  | { readonly at: 'acknowledged'; readonly count: number }
  /** When rows appear on the disk. */
  | { readonly at: 'insert'; readonly count: number }
  /** This time after the stop request. */
  | { readonly at: 'shutdown'; readonly afterMs: number }
  /** During a stop of the process (SIGSTOP), or this time after it. */
  | { readonly at: 'frozen'; readonly frozenMs: number; readonly goneOnMs: number | undefined }

const ANY_MS_MAX = 1500
const SHUTDOWN_MS_MAX = 1200
const FROZEN_MS_MAX = 700
const ACKNOWLEDGED_MAX = 60
const INSERTS_MAX = 60

export function momentOf(seed: number, kill: number): Moment {
  const kind = chance(seed, kill, 101)
  const how = chance(seed, kill, 102)
  if (kind < 0.38) return { at: 'start', share: how * 1.1 }
  // Twice in quick succession: the next start has hardly begun.
  if (kind < 0.44) return { at: 'start', share: how * 0.3 }
  if (kind < 0.58) return { at: 'any', afterMs: how * ANY_MS_MAX }
  if (kind < 0.72) return { at: 'acknowledged', count: 1 + wholeChance(ACKNOWLEDGED_MAX, seed, kill, 103) }
  if (kind < 0.86) return { at: 'insert', count: 1 + wholeChance(INSERTS_MAX, seed, kill, 104) }
  if (kind < 0.93) return { at: 'shutdown', afterMs: how * how * SHUTDOWN_MS_MAX }
  const goneOnMs = chance(seed, kill, 105) < 0.5 ? undefined : chance(seed, kill, 106) * 300
  return { at: 'frozen', frozenMs: how * FROZEN_MS_MAX, goneOnMs }
}
