import { postgresPrograms, startPostgres } from '@gamenet/engines/testing'
import { figure, type Measurement, quantile, type Result, scaled } from './measurement.js'
import { type PeopleService, startPeopleService, USERS } from './people-service.js'

const CONNECTIONS = 64
const RATINGS = 10_000

/** Ratings over HTTP by 64 concurrent clients, each for another pair of users. */
export const rating: Measurement = {
  name: 'rating',
  claim: '500 ratings a second on PGlite, which survive a SIGKILL; 2,000 on PostgreSQL, which survive a power loss',
  async run({ scale, directory, note }) {
    const ratings = scaled(RATINGS, scale, 400)
    const embedded = await measured(directory, {}, ratings, { name: 'PGlite', target: 500 })
    const programs = postgresPrograms()
    if (programs === undefined) {
      note('PostgreSQL is not installed (Debian: apt-get install postgresql); only PGlite is measured')
      return embedded
    }
    const server = await startPostgres(programs, { isDurable: true })
    try {
      const environment = { POSTGRES_URL: server.url }
      return [...embedded, ...(await measured(directory, environment, ratings, { name: 'PostgreSQL', target: 2000 }))]
    } finally {
      await server.stop()
    }
  }
}

async function measured(
  directory: string,
  environment: Readonly<Record<string, string>>,
  ratings: number,
  { name, target }: { readonly name: string; readonly target: number }
): Promise<Result[]> {
  const service = await startPeopleService(directory, CONNECTIONS, environment)
  try {
    await rateAll(service, Math.min(ratings, 1000))
    const begun = performance.now()
    const times = await rateAll(service, ratings)
    const seconds = (performance.now() - begun) / 1000
    const shares = `p50 ${figure(quantile(times, 0.5))} ms, p99 ${figure(quantile(times, 0.99))} ms, ${CONNECTIONS} clients`
    return [
      {
        what: `ratings on ${name}`,
        measured: ratings / seconds,
        unit: '/s',
        target: { bound: 'at least', value: target, of: 'measured' },
        detail: shares
      }
    ]
  } finally {
    await service.remove()
  }
}

async function rateAll(service: PeopleService, ratings: number): Promise<number[]> {
  const times: number[] = []
  let next = 0
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (let number = next; number < ratings; number = next) {
        next += 1
        const rater = number % USERS
        const user = (rater + 1 + (Math.floor(number / USERS) % (USERS - 1))) % USERS
        const begun = performance.now()
        await service.rate(rater, user, 1 + (number % 5))
        times.push(performance.now() - begun)
      }
    })
  )
  return times
}
