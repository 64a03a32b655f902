import { figure, type Measurement, quantile, scaled } from './measurement.js'
import { type PeopleService, startPeopleService } from './people-service.js'

const USERS = 40
const ROUNDS = 200
const POLL_MS = 10
const STORED_WITHIN_MS = 30_000

/** Time from the answer to a rating until the table of ratings in ClickHouse has it. */
export const ratingToTable: Measurement = {
  name: 'rating-to-table',
  claim: 'a rating is in ClickHouse within 2 s (p99), embedded',
  async run({ scale, directory }) {
    const service = await startPeopleService(directory, { users: USERS, connections: 1 })
    try {
      const waits: number[] = []
      const rounds = scaled(ROUNDS, scale, 20)
      for (let round = 0; round < rounds; round += 1) {
        await service.rate(round % USERS, (round + 1 + Math.floor(round / USERS)) % USERS, 1 + (round % 5))
        const begun = performance.now()
        await stored(service, round + 1)
        waits.push(performance.now() - begun)
      }
      const shares = `p50 ${figure(quantile(waits, 0.5))} ms, maximum ${figure(Math.max(...waits))} ms`
      return [
        {
          what: 'rating answered → in the table, p99',
          measured: quantile(waits, 0.99),
          unit: 'ms',
          target: { bound: 'at most', value: 2000, of: 'measured' },
          detail: `${shares}, ${rounds} rounds, resolution ${POLL_MS} ms`
        }
      ]
    } finally {
      await service.remove()
    }
  }
}

/** Resolves when `ratings` ratings are loaded and the projection has caught up. */
async function stored(service: PeopleService, ratings: number): Promise<void> {
  const begun = performance.now()
  while (performance.now() - begun < STORED_WITHIN_MS) {
    const text = await (await fetch(`${service.operatorUrl}/metrics`)).text()
    const value = (line: string) => Number(text.split(`${line} `)[1]?.split('\n', 1)[0] ?? Number.NaN)
    const isLoaded = value('gamenet_loaded_events_total{topic="rating"}') >= ratings
    if (isLoaded && value('gamenet_projection_lag_events{projection="rating"}') === 0) return
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error(`rating ${ratings} was not in the table within ${STORED_WITHIN_MS} ms`)
}
