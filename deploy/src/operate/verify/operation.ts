import { z } from 'zod'
import { FailureError } from '../../config.js'
import { VerifyProgress, VerifyReport } from '../../stores/damage-report.js'
import { Flag, operation } from '../operation.js'
import { notProjecting } from '../rebuild/operation.js'

/** Reads all stored data and verifies its checksums. Repairs a stopped service only. */
export const verify = operation({
  name: 'verification',
  method: 'POST',
  path: '/verify',
  input: z.strictObject({ repair: Flag.default(false), deep: Flag.default(false) }),
  inputRule: 'The query takes repair and deep as true or false',
  progress: VerifyProgress,
  result: VerifyReport,
  needsLog: true,
  run: async ({ engines, isRunning, lostRows, projector, stopping }, { repair, deep }, { onProgress }) => {
    if (repair && isRunning)
      throw new FailureError('A running service cannot be repaired: stop it, and repeat the command.')
    if (deep && projector === undefined) throw notProjecting()
    const { findDamage } = await import('./find-damage.js')
    // Opening the tables of a stopped service starts the repair of lost parts, which may have ended by now.
    const lost = isRunning ? [] : lostRows.found
    const report = await findDamage(engines, { repair, lost }, onProgress, stopping)
    if (!deep || projector === undefined) return report
    const { deepened } = await import('./deep-check.js')
    return await deepened(report, projector.rebuilds, stopping)
  }
})
