import { test } from 'tap'
import { startQuietService } from './boards-service.js'
import { provesRecordedTimes, recordedTimes } from './real-input/boards.js'
import { provesCounts } from './real-input/counts.js'
import { provesRecordedMatches, recordedSnapshots } from './real-input/matches.js'
import { provesPresence } from './real-input/presence.js'
import { provesTitles } from './real-input/titles.js'

/* The complete recorded files; real-input.test.ts and real-input-boards.test.ts use parts of them. */

test('nine years of hourly counts', async (t) => {
  await provesCounts(t, await startQuietService(t), { isWhole: true })
})

test('a catalogue of titles and a list of games with other names', async (t) => {
  await provesTitles(t, await startQuietService(t), { isWhole: true })
})

test('recorded times of sixteen years', async (t) => {
  const rows = await recordedTimes(t)
  if (rows !== undefined) await provesRecordedTimes(t, await startQuietService(t), rows)
})

test('recorded snapshots of a server’s worlds', async (t) => {
  const rows = await recordedSnapshots(t)
  if (rows === undefined) return
  t.equal(rows.length, 107_978)
  await provesRecordedMatches(t, await startQuietService(t), rows)
})

test('sightings of some hundred players, in unordered files, give play time to the minute', async (t) => {
  await provesPresence(t, await startQuietService(t), { players: 300, days: 30 })
})
