import { test } from 'tap'
import { provesNothingLost } from './service/nothing-lost.js'

test('a service of one process that is killed at any instant loses nothing and shows nothing wrong', (t) =>
  provesNothingLost(t, { engines: 'embedded', kills: 30, areAllRebuilt: false }))
