import { killsMissing } from '@gamenet/engines/testing'
import { test } from 'tap'
import { provesInCampaign, realEnginesMissing } from './service/nothing-lost.js'

const missing = (await realEnginesMissing()) ?? killsMissing()

test(
  'processes, engines, replicas and their keeper that are killed at any instant lose nothing and show nothing wrong',
  missing === false ? {} : { skip: missing },
  (t) => provesInCampaign(t, { engines: 'replicas', kills: Number(process.env.CAMPAIGN_KILLS ?? 100) })
)
