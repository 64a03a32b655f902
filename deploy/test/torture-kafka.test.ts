import { test } from 'tap'
import { provesNothingLost, realEnginesMissing } from './service/nothing-lost.js'

const missing = await realEnginesMissing()

/** Of this seed the kills are those below. */
const SEED = 383

test(
  'several processes of which one is killed with an engine lose nothing and show nothing wrong',
  missing === undefined ? {} : { skip: missing },
  async (t) => {
    const { struckBy } = await provesNothingLost(t, { engines: 'kafka', kills: 2, seed: SEED })
    t.same(struckBy, { 'kill ClickHouse front any': 1, 'kill projector any': 1 })
  }
)
