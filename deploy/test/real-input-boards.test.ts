import { test } from 'tap'
import { startQuietService } from './boards-service.js'
import { provesGeneratedTimes, recordedTimes, someBoards } from './real-input/boards.js'
import { everOpen, provesGeneratedMatches, provesRecordedMatches, recordedSnapshots } from './real-input/matches.js'
import { provesTitles } from './real-input/titles.js'

/*
 * As real-input.test.ts: lists of titles, times of boards and snapshots of lobbies.
 */

test('titles, boards and matches', async (t) => {
  const service = await startQuietService(t)
  await t.test('a catalogue of titles and a list of games with other names', (t) =>
    provesTitles(t, service, { isWhole: false })
  )
  await t.test(
    'times of some boards, and of the same make: late, tied, slower, doubled, without date or time',
    async (t) => provesGeneratedTimes(t, service, someBoards((await recordedTimes(t)) ?? []))
  )
  await t.test('snapshots of the same make as a server’s worlds', (t) => provesGeneratedMatches(t, service))
  await t.test('recorded snapshots of the worlds that were ever open', async (t) => {
    const rows = await recordedSnapshots(t)
    if (rows !== undefined) await provesRecordedMatches(t, service, everOpen(rows))
  })
})
