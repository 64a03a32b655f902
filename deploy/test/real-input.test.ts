import { test } from 'tap'
import { startQuietService } from './boards-service.js'
import { provesCounts } from './real-input/counts.js'
import { provesHomePage, startPages } from './real-input/home-page.js'
import { provesPresence } from './real-input/presence.js'

/*
 * Parts of recorded files, and a page like the real ones, go through one complete service; every answer is compared
 * with a plain computation over the raw file that shares no code with the product. The campaign of this name uses the
 * complete files.
 */

test('counts, a page and sightings', async (t) => {
  const upstream = await startPages(t)
  const service = await startQuietService(t, upstream)
  await t.test('days of nine years of hourly counts', (t) => provesCounts(t, service, { isWhole: false }))
  await t.test('the network’s own page from a plain file server', (t) => provesHomePage(t, service, upstream))
  await t.test('sightings of some players, in unordered files, give play time to the minute', (t) =>
    provesPresence(t, service, { players: 40, days: 15 })
  )
})
