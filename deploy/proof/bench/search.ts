import { Chance } from '../simulate/chance.js'
import { type ServedApi, serveTables } from './api-on-tables.js'
import { figure, type Measurement, quantile, type Result, scaled } from './measurement.js'
import { openSearchRows, type SearchRows } from './search-rows.js'

const QUERIES = 60
const WARM = 5
const TARGET_MS = 25

type Request = { readonly what: string; path(chance: Chance, rows: SearchRows): string }

const requests: readonly Request[] = [
  {
    what: 'entries with a time, ± 100 ms',
    // Between one and nine minutes, where most times are.
    path: (chance) => `/api/datasearch/time?time=${(60 + chance.number() * 480).toFixed(3)}&tolerance=100`
  },
  {
    what: 'all boards of a player',
    path: (chance, { players, playerName }) =>
      `/api/datasearch/player/${encodeURIComponent(playerName(chance.below(players)))}`
  }
]

/** Searches over 20 million entries, each query new, over HTTP. */
export const search: Measurement = {
  name: 'search',
  claim: 'new searches over 20 million entries take at most 25 ms',
  async run(conditions) {
    const { tables, ...rows } = await openSearchRows(conditions)
    const api = await serveTables(tables)
    try {
      const results: Result[] = []
      for (const each of requests) results.push(await measured(api, each, rows, scaled(QUERIES, conditions.scale, 10)))
      return results
    } finally {
      await api.close()
      await tables.close()
    }
  }
}

async function measured(api: ServedApi, { what, path }: Request, rows: SearchRows, queries: number): Promise<Result> {
  const chance = new Chance(7)
  const times: number[] = []
  for (let n = -WARM; n < queries; n += 1) {
    const { ms } = await api.get(path(chance, rows))
    if (n >= 0) times.push(ms)
  }
  return {
    what,
    measured: quantile(times, 0.5),
    unit: 'ms',
    target: { bound: 'at most', value: TARGET_MS, of: 'measured' },
    detail: `p95 ${figure(quantile(times, 0.95))} ms, ${figure(rows.rows)} entries`
  }
}
