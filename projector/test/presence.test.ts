import fc from 'fast-check'
import { test } from 'tap'
import { stepStatement } from '../src/projection.js'
import { presence } from '../src/projections/presence.js'
import { presenceDay } from '../src/projections/presence-day.js'
import { emptyTables, openTables } from './pipeline.js'

const RUNS = 60
const DAY_S = 86_400
const START_S = Date.UTC(2025, 11, 30) / 1000

type Sighting = { user: string; ms: number; isOnline: boolean; game: string; periodS: number }

/** Instants close to each other, now and then days apart; near midnights. */
const sighting = fc.record({
  user: fc.constantFrom('ann', 'bob'),
  ms: fc
    .tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: -40, max: 40 }), fc.constantFrom(0, 0, 1, 999))
    .map(([day, step, ms]) => (START_S + day * DAY_S + step * 30) * 1000 + ms),
  isOnline: fc.constantFrom(true, true, true, false),
  game: fc.constantFrom('Ride', 'Ride', 'Halo', ''),
  periodS: fc.constantFrom(10, 30, 60, 600, DAY_S)
})

/** Play time by user and day, computed plainly: the model of the table. */
function played(
  sightings: readonly Sighting[]
): Map<string, { seen: number; online: number; seconds: Map<string, number> }> {
  const days = new Map<string, { seen: number; online: number; seconds: Map<string, number> }>()
  const dayOf = (user: string, day: number) => {
    const key = `${user} ${day}`
    const found = days.get(key) ?? { seen: 0, online: 0, seconds: new Map<string, number>() }
    days.set(key, found)
    return found
  }
  for (const user of ['ann', 'bob']) {
    const byInstant = new Map(sightings.filter((each) => each.user === user).map((each) => [each.ms, each]))
    const ordered = [...byInstant.values()].sort((a, b) => a.ms - b.ms)
    ordered.forEach((b, n) => {
      const day = dayOf(user, Math.floor(b.ms / 1000 / DAY_S))
      day.seen += 1
      if (b.isOnline) day.online += 1
      const a = ordered[n - 1]
      if (a === undefined || !a.isOnline || !b.isOnline || b.game === '' || a.game !== b.game) return
      if (b.ms - a.ms > 3000 * b.periodS) return
      for (let s = Math.floor(a.ms / 1000); s < Math.floor(b.ms / 1000); ) {
        const number = Math.floor(s / DAY_S)
        const end = Math.min(Math.floor(b.ms / 1000), (number + 1) * DAY_S)
        const { seconds } = dayOf(user, number)
        seconds.set(b.game, (seconds.get(b.game) ?? 0) + end - s)
        s = end
      }
    })
  }
  return days
}

test('play time is what a plain computation over the sightings gives, whatever the order of their arrival', async (t) => {
  const { control } = await openTables(t)
  const property = fc.asyncProperty(
    fc.array(sighting, { minLength: 1, maxLength: 25 }),
    fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 30, maxLength: 30 }),
    async (sightings, steps) => {
      await emptyTables(control)
      const values = sightings.map(
        ({ user, ms, isOnline, game, periodS }, offset) =>
          `(1, 0, ${offset}, 's', '', fromUnixTimestamp64Milli(toInt64(${ms}), 'UTC'), '${user}', '${user}', '', '', ${isOnline}, '${game}', ${periodS})`
      )
      await control.execute(
        `INSERT INTO event_presence (epoch, partition, offset, source, import_id, observed_at, user_key, username, gamertag, gamertag_key, is_online, game, period_s) VALUES ${values.join(', ')}`
      )
      for (let first = 0, n = 0; first < sightings.length; n += 1) {
        const next = Math.min(sightings.length, first + (steps[n] ?? 1))
        for (const projection of [presence, presenceDay]) {
          if (projection.form === 'fold') throw new Error('a fold')
          const { sql, parameters } = stepStatement(projection, [{ epoch: 1, partition: 0, first, next }])
          await control.execute(sql, parameters)
        }
        first = next
      }
      const rows = await control.rows(
        `SELECT p.user_key AS user, toUInt32(p.day) AS day, p.sightings AS seen, p.online_sightings AS online,
           arraySort(arrayZip(mapKeys(p.seconds), mapValues(p.seconds))) AS seconds
         FROM presence_day AS p FINAL WHERE p.sightings > 0 OR length(p.seconds) > 0`
      )
      const found = rows.map((row) => JSON.stringify(Object.values(row))).sort()
      const expected = [...played(sightings)]
        .map(([key, { seen, online, seconds }]) => {
          const [user, day] = key.split(' ')
          const games = [...seconds].sort(([a], [b]) => (a < b ? -1 : 1))
          return JSON.stringify([user, Number(day), seen, online, games])
        })
        .sort()
      t.strictSame(found, expected)
    }
  )
  await fc.assert(property, { numRuns: RUNS })
})
