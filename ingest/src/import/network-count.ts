import { type NetworkCounted, networkCountTopic } from '@gamenet/schemas'
import { type Importable, importable } from './importable.js'

/** Counts of the network: a row without any of the three is a missing sample. */
export const networkCountImport: Importable = {
  ...importable({
    topic: networkCountTopic,
    fields: { observedAt: 'instant', registered: 'integer', online: 'integer', lobbies: 'integer' },
    measured: ['registered', 'online', 'lobbies']
  }),
  // Files with `online` and files with `registered` share instants, and so may rows of one file.
  sameAs: (event: NetworkCounted) => Object.keys(event).sort().concat(event.observedAt).join(' ')
}
