import { test } from 'tap'
import { provesInCampaign, realEnginesMissing } from './service/nothing-lost.js'

const missing = await realEnginesMissing()

test(
  'several processes and engines that are killed at any instant lose nothing and show nothing wrong',
  missing === undefined ? {} : { skip: missing },
  (t) => provesInCampaign(t, { engines: 'kafka', kills: Number(process.env.CAMPAIGN_KILLS ?? 30) })
)
