import { setTimeout as pause } from 'node:timers/promises'
import { Pool } from 'undici'
import { minuteNow, type QuietService, titleIds } from './quiet-service.js'

const REQUESTS_PER_SECOND = 500
/** One in this many requests is new; the others repeat earlier ones. */
export const NEW_EVERY = 20
/** Titles of the repeated requests. With all titles, every request of the first second of a minute would be new. */
const KNOWN_TITLES = 20
const TICK_MS = 10
const WARMING_MS = 3000
const DAY_MS = 86_400_000

/** Response times in ms, and the requests that failed. */
export type Load = { readonly times: number[]; readonly failures: string[]; stop(): Promise<void> }

/** Sends 500 requests a second at an even pace, without waiting for earlier answers. */
export function startLoad({ apiUrl }: QuietService): Load {
  const pool = new Pool(apiUrl, { connections: 32 })
  const times: number[] = []
  const failures: string[] = []
  const pending = new Set<Promise<void>>()
  const begun = performance.now()
  let requests = 0
  const sendOne = async (path: string): Promise<void> => {
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
      const one = sendOne(pathOf(requests)).finally(() => pending.delete(one))
      pending.add(one)
    }
  }, TICK_MS)
  return {
    times,
    failures,
    async stop() {
      clearInterval(timer)
      await Promise.all(pending)
      await pool.close()
    }
  }
}

/** Sends requests to the idle service for `ms`, after 3 s that fill its caches. */
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
