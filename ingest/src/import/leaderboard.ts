import { leaderboardTopic, lineText } from '@gamenet/schemas'
import { AHEAD_OF_NOW_MS_MAX } from './import-time.js'
import { importable } from './importable.js'

/** Names of boards. Only a title's page shows whether a board is still listed. */
export const leaderboardImport = importable({
  topic: leaderboardTopic,
  fields: { titleId: 'text', leaderboardId: 'integer', name: 'name', observedAt: 'instant' },
  withheld: ['listed'],
  measured: [],
  aheadMsMax: AHEAD_OF_NOW_MS_MAX,
  outcome: (fields, judge) =>
    judge(typeof fields.name === 'string' ? { ...fields, name: lineText(fields.name) } : fields)
})
