import { beginCampaign } from '@gamenet/engines/testing'

beginCampaign()
for (const properties of ['board-fold', 'convergence', 'match-session', 'dead-letters', 'presence', 'rebuild']) {
  await import(`./${properties}.test.js`)
}
