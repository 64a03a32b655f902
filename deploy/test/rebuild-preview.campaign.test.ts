import { beginCampaign } from '@gamenet/engines/testing'

beginCampaign()
await import('./rebuild-preview.test.js')
