import { findDamage } from '../../src/operate/verify/find-damage.js'
import type { WorldUnderTest } from './erasure-world.js'

/** Verifies the engines. */
export async function damageFound(engines: Parameters<typeof findDamage>[0]) {
  return await findDamage(engines, { marking: undefined }, () => undefined, new AbortController().signal)
}

/** The engines of a world, as `gamenet verify` takes them. */
export function enginesOf({ clickhouse, log, logChoice, writes }: WorldUnderTest): Parameters<typeof findDamage>[0] {
  return {
    clickhouse,
    directory: undefined,
    log,
    logChoice,
    ownsTables: true,
    ownsWrites: false,
    writes: async () => writes,
    openWrites: async () => writes
  }
}
