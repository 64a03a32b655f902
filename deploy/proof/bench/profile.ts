import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { instantOf } from '@gamenet/schemas'
import { type ServedApi, serveTables } from './api-on-tables.js'
import { randomness } from './count-files.js'
import { type Conditions, figure, type Measurement, quantile, type Result, scaled } from './measurement.js'
import { openProfileRows, type ProfileRows } from './profile-rows.js'
import { importTitlesAndNetwork, minuteNow, type QuietService } from './quiet-service.js'
import { compareRepeated } from './repeated-answer.js'

const QUERIES = 100
const WARM = 10
const SIGHTINGS = 600

/** A query about a random user, with its target in ms. */
type Request = { readonly what: string; readonly atMost?: number; path(profile: string, other: string): string }

const requests: readonly Request[] = [
  { what: 'profile', atMost: 25, path: (profile) => profile },
  { what: 'games', path: (profile) => `${profile}/games-played` },
  { what: 'scores', path: (profile) => `${profile}/leaderboard-scores` },
  { what: 'play time by day and game', path: (profile) => `${profile}/play-time` },
  { what: 'timeline', path: (profile) => `${profile}/timeline` },
  { what: 'two players compared', path: (_, names) => `/api/players/compare?names=${names}` }
]

/** New queries about users, and one profile repeatedly. */
export const profile: Measurement = {
  name: 'profile',
  claim: 'a new profile of 100,000 takes at most 25 ms, and a repeated one is sent at 0.85 × the speed of bare Fastify',
  async run(conditions) {
    const uncached = await measureUncached(conditions)
    const repeated = await compareRepeated(conditions, {
      queries: [{ what: 'a profile', path: '/api/profile/badger' }],
      codings: ['identity'],
      prepare: importSightings
    })
    return [...uncached, ...repeated]
  }
}

async function measureUncached(conditions: Conditions): Promise<Result[]> {
  const { tables, writes, ...rows } = await openProfileRows(conditions)
  const api = await serveTables(tables, writes)
  try {
    const results: Result[] = []
    for (const each of requests) results.push(await measured(api, each, rows, scaled(QUERIES, conditions.scale, 10)))
    return results
  } finally {
    await api.close()
    await writes.close()
    await tables.close()
  }
}

async function measured(
  api: ServedApi,
  { what, atMost, path }: Request,
  { users, username }: Pick<ProfileRows, 'users' | 'username'>,
  queries: number
): Promise<Result> {
  const random = randomness(7)
  const anyUser = () => username(Math.floor(random() * users))
  const times: number[] = []
  for (let n = -WARM; n < queries; n += 1) {
    const [one, other] = [anyUser(), anyUser()]
    const players = [one, other].map((name) => name.replace('User', 'Tag')).join(',')
    const begun = performance.now()
    await api.get(path(`/api/profile/${encodeURIComponent(one)}`, encodeURIComponent(players)))
    if (n >= 0) times.push(performance.now() - begun)
  }
  return {
    what,
    measured: quantile(times, 0.5),
    unit: 'ms',
    ...(atMost === undefined ? {} : { target: { bound: 'at most', value: atMost, of: 'measured' } as const }),
    detail: `p95 ${figure(quantile(times, 0.95))} ms, ${figure(users)} users`
  }
}

/** Imports sightings of one user, one per minute up to now. */
async function importSightings(service: QuietService, { directory }: Conditions): Promise<void> {
  await importTitlesAndNetwork(service, directory)
  const file = join(directory, 'sightings.ndjson')
  const lines = Array.from({ length: SIGHTINGS }, (_, n) =>
    JSON.stringify({
      username: 'Badger',
      gamertag: 'Lucky Badger',
      state: 'online',
      game: 'Halo 2',
      observedAt: instantOf(minuteNow() - n * 60_000)
    })
  )
  await writeFile(file, `${lines.join('\n')}\n`)
  await service.importFile('presence', file)
}
