import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import { UsageError } from '../config.js'
import { PARKED_LIST_MAX, ParkedAsked, ParkedChoice, type ParkedOperations, ParkedPosition } from './parked.js'

/** Answers with lines: progress, then the report or the error. */
type InLines = <Progress, Report>(
  reply: FastifyReply,
  what: string,
  work: (tell: (progress: Progress) => void) => Promise<Report>
) => FastifyReply

const Asked = z
  .object({
    topic: z.string().exactOptional(),
    limit: z.coerce.number().exactOptional(),
    dropped: z.enum(['true', 'false']).exactOptional()
  })
  .transform(({ limit = 100, dropped, ...topic }) => ({ limit, isDropped: dropped === 'true', ...topic }))
  .pipe(ParkedAsked)

/** The part of the operator port that is about parked messages. */
export function addParked(app: FastifyInstance, parked: ParkedOperations, inLines: InLines): void {
  app.get('/parked', (request) => {
    const asked = Asked.safeParse(request.query)
    if (asked.success) return parked.list(asked.data)
    throw new UsageError(
      `The query takes topic, limit (1 to ${PARKED_LIST_MAX}) and dropped (true or false); got ${JSON.stringify(request.query)}.`
    )
  })
  app.get('/parked/:topic/:epoch/:partition/:offset', (request) => {
    const Params = z.object({ topic: z.string(), ...NUMBERS }).pipe(ParkedPosition)
    const position = Params.safeParse(request.params)
    if (position.success) return parked.show(position.data)
    throw new UsageError(`A position is /parked/<topic>/<epoch>/<partition>/<offset>; got ${request.url}.`)
  })
  app.post('/parked/drop', async (request) => await parked.drop(await choiceOf(request.body)))
  app.post('/parked/retry', async (request, reply) => {
    const choice = await choiceOf(request.body)
    return inLines(reply, 'retrying parked messages failed', (tell) => parked.retry(choice, tell))
  })
}

const NUMBERS = { epoch: z.coerce.number(), partition: z.coerce.number(), offset: z.coerce.number() }

async function choiceOf(body: unknown): Promise<ParkedChoice> {
  const sent = body instanceof Readable ? await text(body) : ''
  try {
    return ParkedChoice.parse(JSON.parse(sent))
  } catch {
    throw new UsageError(
      'The body, as application/octet-stream, is the JSON {"topic": …, "positions": "all" or a list of {"epoch", "partition", "offset"}}.'
    )
  }
}
