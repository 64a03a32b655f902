import { z } from 'zod'
import { FailureError } from '../config.js'
import { comparePartList, PART_LIST } from '../wiring/part-list.js'
import { VerifyProgress, VerifyReport } from './damage-report.js'
import { Flag, operation } from './operation.js'

/** Reads all stored data and verifies its checksums. Repairs a stopped service only. */
export const verify = operation({
  name: 'verification',
  method: 'POST',
  path: '/verify',
  input: z.strictObject({ repair: Flag.default(false) }),
  inputRule: 'The query takes repair as true or false',
  progress: VerifyProgress,
  result: VerifyReport,
  needsLog: true,
  run: async ({ engines, isRunning, lostRows, partList, stopping }, { repair }, { onProgress }) => {
    if (repair && isRunning)
      throw new FailureError('A running service cannot be repaired: stop it, and repeat the command.')
    const { findDamage } = await import('./find-damage.js')
    // Opening the tables of a stopped service starts the repair of lost parts, which may have ended by now.
    const lost = isRunning ? [] : lostRows.found
    const directory = isRunning ? undefined : engines.directory
    // With `repair`, the list was compared when the tables were opened.
    const compare = () => directory && comparePartList(directory.part(PART_LIST), engines.clickhouse.control)
    const parts = repair ? partList?.found : await compare()
    return await findDamage(engines, { repair, lost, parts }, onProgress, stopping)
  }
})
