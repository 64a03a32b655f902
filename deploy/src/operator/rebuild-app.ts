import type { Rebuilds } from '@gamenet/projector/rebuild'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { UsageError } from '../config.js'

const Flag = z.enum(['true', 'false']).transform((text) => text === 'true')
const Options = z.strictObject({
  until: z.string().exactOptional(),
  isFromLog: Flag.exactOptional(),
  acceptDifferences: Flag.exactOptional()
})
type Options = z.infer<typeof Options>

/** What is done by name: `POST /rebuilds/<projection>/<name>`, options in the query. */
const ACTIONS: Readonly<
  Record<Exclude<keyof Rebuilds, 'list'>, (rebuilds: Rebuilds, projection: string, options: Options) => unknown>
> = {
  plan: (rebuilds, projection, options) => rebuilds.plan(projection, options),
  start: (rebuilds, projection, options) => rebuilds.start(projection, options),
  pause: (rebuilds, projection) => rebuilds.pause(projection),
  resume: (rebuilds, projection) => rebuilds.resume(projection),
  cancel: (rebuilds, projection) => rebuilds.cancel(projection),
  verify: (rebuilds, projection) => rebuilds.verify(projection),
  swap: (rebuilds, projection, options) => rebuilds.swap(projection, options),
  rollback: (rebuilds, projection) => rebuilds.rollback(projection),
  drop: (rebuilds, projection) => rebuilds.drop(projection)
}

/** The part of the operator port that is about rebuilds. */
export function addRebuilds(app: FastifyInstance, rebuilds: Rebuilds): void {
  app.get('/rebuilds', () => rebuilds.list())
  for (const [name, act] of Object.entries(ACTIONS)) {
    app.post(`/rebuilds/:projection/${name}`, (request) => {
      const { projection } = z.object({ projection: z.string() }).parse(request.params)
      return act(rebuilds, projection, optionsOf(request.query))
    })
  }
}

function optionsOf(query: unknown): Options {
  const options = Options.safeParse(query)
  if (options.success) return options.data
  throw new UsageError(
    `The query takes until, isFromLog and acceptDifferences, the last two as true or false; got ${JSON.stringify(query)}.`
  )
}
