import { test } from 'tap'
import { startQuietService } from './boards-service.js'
import { provesGeneratedTimes } from './real-input/boards.js'
import { provesGeneratedMatches } from './real-input/matches.js'
import { provesTitles } from './real-input/titles.js'

/*
 * As real-input.test.ts: lists of titles, times of boards and snapshots of lobbies.
 */

test('titles, boards and matches', async (t) => {
  const service = await startQuietService(t)
  await t.test('a catalogue of titles and a list of games with other names', (t) =>
    provesTitles(t, service, { isWhole: false })
  )
  await t.test('times like the recorded ones: late, tied, slower, duplicate, without date or time', (t) =>
    provesGeneratedTimes(t, service)
  )
  await t.test('snapshots like those of a server’s worlds', (t) => provesGeneratedMatches(t, service))
})
