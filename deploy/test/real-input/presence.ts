import { join } from 'node:path'
import type { Test } from 'tap'
import { z } from 'zod'
import type { TestService } from '../boards-service.js'
import { forEach, sameList } from '../service/ask.js'
import { gamenetJson } from '../service/gamenet.js'
import { playedOf, sightingsOf, usernameOf, writeFiles } from '../service/presence-year.js'

const DAY_MS = 86_400_000

const Report = z.array(z.object({ published: z.int(), rejected: z.int(), missing: z.int() }))
const PlayTime = z.object({
  username: z.string(),
  totalMinutes: z.int(),
  daysSeen: z.int(),
  days: z.array(z.object({ date: z.string(), games: z.array(z.object({ gameName: z.string(), seconds: z.int() })) }))
})

/** Sightings of many players, in unordered files, give play time to the minute. */
export async function provesPresence(
  t: Test,
  service: TestService,
  { players, days: givenDays }: { readonly players: number; readonly days: number }
): Promise<void> {
  // Half a day before now, so that no boundary of a day is between the two.
  const toMs = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const fromMs = toMs - givenDays * DAY_MS
  const paths = ['a', 'b', 'c'].map((name) => join(service.directory, `${name}.jsonl.gz`))
  const files = await writeFiles(paths, players, { fromMs, toMs })
  let published = 0
  for (const path of files.paths) {
    for (const report of Report.parse(await gamenetJson(service.environment, ['import', 'presence', path]))) {
      t.match(report, { rejected: 0, missing: 0 })
      published += report.published
    }
  }
  t.equal(published, files.rows)
  await service.caughtUp()
  await forEach([...Array(players).keys()], 4, async (player) => {
    const sightings = sightingsOf(player, fromMs, toMs)
    if (sightings.length === 0) return
    const username = usernameOf(player)
    const played = playedOf(sightings)
    const found = PlayTime.parse(
      await service.get(`/api/profile/${encodeURIComponent(username)}/play-time?days=${givenDays + 2}`)
    )
    const days = found.days.filter(({ games }) => games.length > 0).map(({ date, games }) => [date, sorted(games)])
    const wanted = [...played].map(([date, games]) => [
      date,
      sorted([...games].map(([gameName, seconds]) => ({ gameName, seconds })))
    ])
    sameList(t, days, wanted.sort(), username)
    const seconds = [...played.values()].flatMap((games) => [...games.values()]).reduce((sum, each) => sum + each, 0)
    const daysSeen = new Set(
      sightings.filter(({ game }) => game !== undefined).map(({ ms }) => new Date(ms).toISOString().slice(0, 10))
    ).size
    t.match(found, { username, totalMinutes: Math.floor(seconds / 60), daysSeen })
  })
}

function sorted(games: readonly { readonly gameName: string; readonly seconds: number }[]): unknown[] {
  return games.map(({ gameName, seconds }) => [gameName, seconds]).sort()
}
