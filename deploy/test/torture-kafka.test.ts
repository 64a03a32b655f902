import { kafkaBrokerMissing, postgresPrograms } from '@gamenet/engines/testing'
import { test } from 'tap'
import { provesNothingLost } from './service/nothing-lost.js'

const missing =
  (await kafkaBrokerMissing()) ?? (postgresPrograms() === undefined ? 'PostgreSQL is not installed' : undefined)
if (missing !== undefined && process.env.CI === 'true') throw new Error(missing)
if (missing !== undefined) console.error(`NOT TESTED: kills of processes and engines on a real Kafka; ${missing}.`)

test(
  'several processes and engines that are killed at any instant lose nothing and show nothing wrong',
  missing === undefined ? {} : { skip: missing },
  (t) => provesNothingLost(t, { engines: 'kafka', kills: 4, areAllRebuilt: false })
)
