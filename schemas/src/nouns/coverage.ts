import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'

const Source = z
  .string()
  .describe('A source of the collector, or `counts`: hours with a count of users online, imported ones too.')

/** The answer of `getCoverage`. */
export const Coverage = z
  .array(
    z
      .object({
        source: Source,
        from: ShownInstant.describe('Last success before the gap.'),
        to: ShownInstant.nullable().describe('First success after it; null while it lasts.'),
        seconds: z.int().describe('Length, up to the end of the window while it lasts.')
      })
      .meta({ id: 'Gap' })
  )
  .meta({ id: 'Coverage', description: 'The gaps of the collector, by source, oldest first.' })
export type Coverage = z.infer<typeof Coverage>

/** The answer of `getStatus`. */
export const CollectorStatus = z
  .object({
    history: z
      .object({ percent: z.int().min(0).max(99) })
      .nullable()
      .describe('Progress of a history that is being loaded; null when there is none.'),
    sources: z.array(
      z
        .object({
          source: Source,
          lastSuccessAt: ShownInstant.nullable(),
          ageSeconds: z.int().nullable().describe('Since the last success, to the minute; null: never.'),
          lastOutcome: z.string().describe('`succeeded`, `partial` or `failed`.'),
          gaps: z.int().describe('Gaps in the last 24 hours.'),
          gapSeconds: z.int().describe('Their length within the last 24 hours.')
        })
        .meta({ id: 'SourceStatus' })
    )
  })
  .meta({ id: 'CollectorStatus', description: 'Age and gaps of each source that has ever run.' })
export type CollectorStatus = z.infer<typeof CollectorStatus>
