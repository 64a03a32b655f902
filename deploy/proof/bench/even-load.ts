import { setTimeout as pause } from 'node:timers/promises'
import { Pool } from 'undici'
import { minuteNow, type QuietService, titleIds } from './quiet-service.js'

const REQUESTS_PER_SECOND = 500
/** One request of this many is new; the others repeat earlier ones. */
export const NEW_EVERY = 20
/** Titles that many ask about. All of them at once would be new questions for a second of every minute. */
const KNOWN_TITLES = 20
const TICK_MS = 10
const WARMING_MS = 3000
const DAY_MS = 86_400_000

/** Milliseconds that answers took, and the requests that failed, until it is stopped. */
export type Load = { readonly times: number[]; readonly failures: string[]; stop(): Promise<void> }

/** Asks 500 times a second at an even pace, whatever becomes of what was asked before. */
export function startLoad({ apiUrl }: QuietService): Load {
  const pool = new Pool(apiUrl, { connections: 32 })
  const times: number[] = []
  const failures: string[] = []
  const underWay = new Set<Promise<void>>()
  const begun = performance.now()
  let requests = 0
  const askOne = async (path: string): Promise<void> => {
    const sentAt = performance.now()
    try {
      const { statusCode, body } = await pool.request({ method: 'GET', path })
      await body.dump({ limit: Number.MAX_SAFE_INTEGER })
      if (statusCode !== 200) failures.push(`${path}: ${statusCode}`)
    } catch (error) {
      failures.push(`${path}: ${String(error)}`)
    }
    times.push(performance.now() - sentAt)
  }
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - begun) * REQUESTS_PER_SECOND) / 1000)
    for (; requests < due; requests += 1) {
      const one = askOne(pathOf(requests)).finally(() => underWay.delete(one))
      underWay.add(one)
    }
  }, TICK_MS)
  return {
    times,
    failures,
    async stop() {
      clearInterval(timer)
      await Promise.all(underWay)
      await pool.close()
    }
  }
}

/** Asks for a while, so that caches are full, then during `ms`; returns what the second part took. */
export async function loadAlone(service: QuietService, ms: number): Promise<Load> {
  const warming = startLoad(service)
  await pause(WARMING_MS)
  await warming.stop()
  const load = startLoad(service)
  await pause(ms)
  await load.stop()
  return load
}

let windows = 0

function pathOf(n: number): string {
  const popular = titleIds[n % KNOWN_TITLES]
  const known = ['/api/online-users', '/api/games', `/api/title/${popular}/online-users/history?hours=6`]
  if (n % NEW_EVERY > 0) return known[n % known.length] ?? ''
  windows += 1
  const toMs = minuteNow() - windows * 60_000
  const titleId = titleIds[windows % titleIds.length]
  return `/api/title/${titleId}/online-users/history?from=${iso(toMs - DAY_MS)}&to=${iso(toMs)}`
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace('.000', '')
}
