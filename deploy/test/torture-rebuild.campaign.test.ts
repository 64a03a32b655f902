import { test } from 'tap'
import { REBUILT_NAMES } from '../proof/torture/rebuilder.js'
import { provesInCampaign } from './service/nothing-lost.js'

test('every projection is rebuilt after kills, while scrapers write and clients read, and nothing is lost or wrong', (t) =>
  provesInCampaign(t, { engines: 'embedded', kills: 3, rebuilt: REBUILT_NAMES }))
