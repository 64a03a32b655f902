import { RebuildPlan, RebuildStatus, type Rebuilds, SwapReport, VerifyReport } from '@gamenet/projector/rebuild'
import { z } from 'zod'

type Ask = <Answer>(schema: z.ZodType<Answer>, method: 'GET' | 'POST', path: string) => Promise<Answer>

/** The rebuilds of a service that runs elsewhere. */
export function rebuildClient(ask: Ask): Rebuilds {
  const act = <Answer>(
    schema: z.ZodType<Answer>,
    projection: string,
    name: Exclude<keyof Rebuilds, 'list'>,
    options: Readonly<Record<string, string | boolean | undefined>> = {}
  ) => {
    const query = new URLSearchParams()
    for (const [option, value] of Object.entries(options)) if (value !== undefined) query.set(option, String(value))
    return ask(schema, 'POST', `/rebuilds/${encodeURIComponent(projection)}/${name}?${query}`)
  }
  return {
    list: () => ask(z.array(RebuildStatus), 'GET', '/rebuilds'),
    plan: (projection, options) => act(RebuildPlan, projection, 'plan', options),
    start: (projection, options) => act(RebuildStatus, projection, 'start', options),
    pause: (projection) => act(RebuildStatus, projection, 'pause'),
    resume: (projection) => act(RebuildStatus, projection, 'resume'),
    cancel: (projection) => act(RebuildStatus, projection, 'cancel'),
    verify: (projection) => act(VerifyReport, projection, 'verify'),
    swap: (projection, options) => act(SwapReport, projection, 'swap', options),
    rollback: (projection) => act(SwapReport, projection, 'rollback'),
    drop: (projection) => act(RebuildStatus, projection, 'drop')
  }
}
