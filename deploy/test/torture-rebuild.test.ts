import { test } from 'tap'
import { provesNothingLost } from './service/nothing-lost.js'

test('every projection is rebuilt after kills, while scrapers write and clients read, and nothing is lost or wrong', (t) =>
  provesNothingLost(t, { engines: 'embedded', kills: 3, areAllRebuilt: true }))
