import { type ServedApi, serveTables } from './api-on-tables.js'
import { randomness } from './count-files.js'
import { figure, type Measurement, quantile, type Result, scaled } from './measurement.js'
import { openSearchRows, type SearchRows } from './search-rows.js'

const QUERIES = 60
const WARM = 5

/** A random query, with its target in ms. */
type Request = { readonly what: string; readonly atMost?: number; path(random: () => number, rows: SearchRows): string }

const requests: readonly Request[] = [
  {
    what: 'entries with a time, ± 100 ms',
    atMost: 25,
    path: (random) => `/api/datasearch/time?time=${anyTime(random)}&tolerance=100`
  },
  {
    what: 'entries with exactly a time',
    path: (random) => `/api/datasearch/time?time=${anyTime(random)}`
  },
  {
    what: 'entries of one title with a time, ± 60 s',
    path: (random, { titleIds }) =>
      `/api/datasearch/time?time=${anyTime(random)}&tolerance=60000&titleId=${titleIds[Math.floor(random() * titleIds.length)]}`
  },
  {
    what: 'all boards of a player',
    atMost: 25,
    path: (random, rows) => `/api/datasearch/player/${encodeURIComponent(anyPlayer(random, rows))}`
  },
  {
    what: 'the same with sizes of boards and the entries above',
    path: (random, rows) => `/api/player/${encodeURIComponent(anyPlayer(random, rows))}`
  },
  {
    what: 'all boards of 20 players',
    path: (random, rows) => {
      const names = Array.from({ length: 20 }, () => anyPlayer(random, rows))
      return `/api/datasearch/players?names=${encodeURIComponent(names.join(','))}`
    }
  },
  {
    what: 'names for a search box, of all players',
    path: (random) =>
      `/api/datasearch/suggest?q=${encodeURIComponent('player '.slice(0, 1 + Math.floor(random() * 7)))}&limit=${1 + Math.floor(random() * 50)}`
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

async function measured(
  api: ServedApi,
  { what, atMost, path }: Request,
  rows: SearchRows,
  queries: number
): Promise<Result> {
  const random = randomness(7)
  const times: number[] = []
  let characters = 0
  for (let n = -WARM; n < queries; n += 1) {
    const begun = performance.now()
    const { text } = await api.get(path(random, rows))
    if (n < 0) continue
    times.push(performance.now() - begun)
    characters += text.length
  }
  return {
    what,
    measured: quantile(times, 0.5),
    unit: 'ms',
    ...(atMost === undefined ? {} : { target: { bound: 'at most', value: atMost, of: 'measured' } as const }),
    detail: `p95 ${figure(quantile(times, 0.95))} ms, ${figure(characters / times.length / 1024)} KiB per answer, ${figure(rows.rows)} entries`
  }
}

/** Returns seconds between one and nine minutes, where most times are. */
function anyTime(random: () => number): string {
  return (60 + random() * 480).toFixed(3)
}

function anyPlayer(random: () => number, { players, playerName }: SearchRows): string {
  return playerName(Math.floor(random() * players))
}
