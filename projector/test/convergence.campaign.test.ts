import { beginCampaign } from '@gamenet/engines/testing'

beginCampaign()
for (const properties of ['board-fold', 'convergence', 'match-session', 'parked', 'presence', 'rebuild']) {
  await import(`./${properties}.test.js`)
}
