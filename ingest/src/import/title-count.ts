import { titleCountTopic } from '@gamenet/schemas'
import { importable } from './importable.js'

/**
 * Counts of titles. Lobbies are known only together with players, so `online` determines whether there is a
 * sample.
 */
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
