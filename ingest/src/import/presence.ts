import { presenceTopic, visibleText } from '@gamenet/schemas'
import { AHEAD_OF_NOW_MS_MAX } from './import-time.js'
import { type Fields, type Importable, importable } from './importable.js'

/** The default interval of observations. */
const PERIOD_SECONDS = 60

const base = importable({
  topic: presenceTopic,
  fields: {
    username: 'name',
    gamertag: 'name',
    state: 'text',
    game: 'name',
    periodSeconds: 'integer',
    observedAt: 'instant'
  },
  measured: ['state'],
  aheadMsMax: AHEAD_OF_NOW_MS_MAX,
  outcome: (fields, judge) => judge({ periodSeconds: PERIOD_SECONDS, ...asShown(fields) })
})

/** Sightings of users: a row without a state is a missing sample. */
export const presenceImport: Importable = {
  ...base,
  required: base.required.filter((field) => field !== 'periodSeconds')
}

/** Returns the fields with names as a page shows them, so that a name is the same user and game from any source. */
function asShown(fields: Fields): Fields {
  const shown: Record<string, unknown> = { ...fields }
  for (const field of ['username', 'gamertag', 'state', 'game']) {
    const value = shown[field]
    if (typeof value === 'string') shown[field] = visibleText(value)
  }
  return shown
}
