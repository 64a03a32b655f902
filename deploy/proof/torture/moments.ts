import { chance, wholeChance } from './world.js'

/** The moment of a kill, which follows from the seed and the number of the kill. */
export type Moment =
  /** During the start, after a share of the usual duration. */
  | { readonly at: 'start'; readonly share: number }
  /** This time after the start. */
  | { readonly at: 'any'; readonly afterMs: number }
  /** After `count` acknowledgements. */
  | { readonly at: 'acknowledged'; readonly count: number }
  /** When ClickHouse has added `count` parts. */
  | { readonly at: 'insert'; readonly count: number }
  /** This time after the stop request. */
  | { readonly at: 'shutdown'; readonly afterMs: number }
  /** While the process is stopped (SIGSTOP), or this time after it was resumed. */
  | { readonly at: 'frozen'; readonly frozenMs: number; readonly resumedMs: number | undefined }

const ANY_MS_MAX = 1500
const SHUTDOWN_MS_MAX = 1200
const FROZEN_MS_MAX = 700
const ACKNOWLEDGED_MAX = 60
const INSERTS_MAX = 60

/** The share of the services that lose their ClickHouse first. */
const ENGINE_SHARE = 0.4

/** Whether the embedded ClickHouse is killed once the service listens, before the service is. */
export function isEngineKilled(seed: number, kill: number): boolean {
  return chance(seed, kill, 107) < ENGINE_SHARE
}

export function momentOf(seed: number, kill: number): Moment {
  const kind = chance(seed, kill, 101)
  const how = chance(seed, kill, 102)
  if (kind < 0.38) return { at: 'start', share: how * 1.1 }
  // Early in the start, soon after the last kill.
  if (kind < 0.44) return { at: 'start', share: how * 0.3 }
  if (kind < 0.58) return { at: 'any', afterMs: how * ANY_MS_MAX }
  if (kind < 0.72) return { at: 'acknowledged', count: 1 + wholeChance(ACKNOWLEDGED_MAX, seed, kill, 103) }
  if (kind < 0.86) return { at: 'insert', count: 1 + wholeChance(INSERTS_MAX, seed, kill, 104) }
  if (kind < 0.93) return { at: 'shutdown', afterMs: how * how * SHUTDOWN_MS_MAX }
  const resumedMs = chance(seed, kill, 105) < 0.5 ? undefined : chance(seed, kill, 106) * 300
  return { at: 'frozen', frozenMs: how * FROZEN_MS_MAX, resumedMs }
}
