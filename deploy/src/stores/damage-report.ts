import { z } from 'zod'

/** A damage, its consequence and what to do. */
export const Finding = z.object({
  part: z.enum(['log', 'tables', 'writes', 'seals', 'checkpoints', 'datasets']),
  what: z.string(),
  cost: z.string(),
  repair: z.string()
})
export type Finding = z.infer<typeof Finding>

export const VerifyProgress = z.object({
  phase: z.enum(['log', 'tables', 'datasets']),
  bytes: z.int(),
  /** An estimate. */
  bytesTotal: z.int()
})
export type VerifyProgress = z.infer<typeof VerifyProgress>

export type ReportBytes = (phase: VerifyProgress['phase'], bytes: number) => void

export const VerifyReport = z.object({
  findings: z.array(Finding),
  bytes: z.int(),
  tookMs: z.int(),
  /** Engines on servers, which check their own files. */
  notChecked: z.array(z.string())
})
export type VerifyReport = z.infer<typeof VerifyReport>
