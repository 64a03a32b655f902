import { titleCountTopic } from '@gamenet/schemas'
import { importable } from './importable.js'

/** Counts of titles: lobbies are only known together with players, so `online` alone decides whether there is a sample. */
export const titleCountImport = importable({
  topic: titleCountTopic,
  fields: {
    titleId: 'text',
    observedAt: 'instant',
    online: 'integer',
    sessions: 'integer',
    lobbyPlayers: 'integer'
  },
  measured: ['online']
})
