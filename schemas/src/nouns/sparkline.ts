import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { Count } from './count.js'

/** The answer of `getSparklines`. */
export const Sparklines = z
  .object({
    from: ShownInstant.describe('Begin of the first step.'),
    stepSeconds: z.int().describe('Length of a step.'),
    titles: z.array(
      z
        .object({
          titleId: z.string(),
          name: z.string(),
          online: z.array(Count.nullable()).describe('Peak of each step, oldest first; null without a sample.')
        })
        .meta({ id: 'Sparkline' })
    )
  })
  .meta({ id: 'Sparklines', description: 'The trend line of each title, by id.' })
export type Sparklines = z.infer<typeof Sparklines>
