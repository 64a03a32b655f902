import { networkCountTopic } from '@gamenet/schemas'
import { importable } from './importable.js'

/** Counts of the network: a row without any of the three is a missing sample. */
export const networkCountImport = importable({
  topic: networkCountTopic,
  fields: { observedAt: 'instant', registered: 'integer', online: 'integer', lobbies: 'integer' },
  measured: ['registered', 'online', 'lobbies']
})
