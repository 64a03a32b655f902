import { z } from 'zod'
import { VerifyProgress, VerifyReport } from '../../stores/damage-report.js'
import { Flag, operation } from '../operation.js'
import { notProjecting } from '../rebuild/operation.js'

/** Reads all stored data and verifies its checksums; the service rebuilds damaged tables. */
export const verify = operation({
  name: 'verification',
  route: 'POST /verify',
  input: z.strictObject({ deep: Flag.default(false) }),
  inputRule: 'The query takes deep as true or false',
  progress: VerifyProgress,
  result: VerifyReport,
  needsLog: true,
  run: async ({ engines, damage, projector, stopping }, { deep }, { onProgress }) => {
    if (deep && projector === undefined) throw notProjecting()
    const [{ findDamage }, { findingsSetAside }] = await Promise.all([
      import('./find-damage.js'),
      import('./damage-of-tables.js')
    ])
    const marking = engines.damageWatch === undefined ? undefined : damage.tables
    const found = await findDamage(engines, { marking }, onProgress, stopping)
    const report = { ...found, findings: [...found.findings, ...findingsSetAside(await damage.setAside())] }
    if (!deep || projector === undefined) return report
    const { deepened } = await import('./deep-check.js')
    return await deepened(report, projector.rebuilds, marking, stopping)
  }
})
