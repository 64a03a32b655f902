import { test } from 'tap'
import { provesInCampaign } from './service/nothing-lost.js'

test('a service of one process that is killed at any instant loses no row and shows no wrong one', (t) =>
  provesInCampaign(t, { engines: 'embedded', kills: Number(process.env.CAMPAIGN_KILLS ?? 30) }))
