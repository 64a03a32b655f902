import { z } from 'zod'
import { FailureError } from '../config.js'
import { Flag, operation } from './operation.js'

/** A damage, its cost, and the command that repairs it. */
export const Finding = z.object({
  part: z.enum(['log', 'tables', 'writes', 'seals', 'checkpoints']),
  what: z.string(),
  cost: z.string(),
  repair: z.string(),
  /** Whether `--repair` was given and has repaired it. */
  isRepaired: z.boolean()
})
export type Finding = z.infer<typeof Finding>

export const VerifyProgress = z.object({
  phase: z.enum(['log', 'tables', 'writes']),
  bytes: z.int(),
  /** An estimate. */
  bytesTotal: z.int()
})
export type VerifyProgress = z.infer<typeof VerifyProgress>

export const VerifyReport = z.object({
  findings: z.array(Finding),
  bytes: z.int(),
  tookMs: z.int(),
  /** Engines on servers, which check their own files. */
  notChecked: z.array(z.string())
})
export type VerifyReport = z.infer<typeof VerifyReport>

/** Reads everything that is stored and checks its checksums. Repairs a stopped service only. */
export const verify = operation({
  name: 'verification',
  method: 'POST',
  path: '/verify',
  input: z.strictObject({ repair: Flag.default(false) }),
  inputRule: 'The query takes repair as true or false',
  progress: VerifyProgress,
  result: VerifyReport,
  run: async ({ engines, isRunning, stopping }, { repair }, { onProgress }) => {
    if (repair && isRunning) throw new FailureError('A running service is not repaired: stop it, and ask again.')
    const { findDamage } = await import('./find-damage.js')
    return await findDamage(engines, { repair }, onProgress, stopping)
  }
})
