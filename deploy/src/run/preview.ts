import { changedAnswers, endpoints } from '@gamenet/api'
import { foldRecords } from '@gamenet/projector'
import { withServing } from '@gamenet/schemas'
import { scrapePeriods } from '../config.js'
import type { OperationNeeds } from '../operate/operation.js'
import type { Needs } from './dependencies.js'
import { endpointsOf, readQuestions } from './questions.js'

/** Returns the answers that a swap changes, from the endpoints of this program and the saved questions. */
export function changedAnswersOf({ config, engines, tables, readSide }: Needs): OperationNeeds['changedAnswers'] {
  return async ({ subjects }, { live, fresh }) => {
    const questions = await readQuestions(config.QUESTIONS_DIR, withServing(tables, live))
    return await changedAnswers({
      endpoints: [...endpoints, ...endpointsOf(questions)],
      subjects,
      before: live,
      after: fresh,
      tables,
      positions: readSide.positions,
      writes: await engines.writes(),
      clock: { nowMs: Date.now(), periodSeconds: scrapePeriods(config) },
      foldRecords
    })
  }
}
