import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { z } from 'zod'
import { UsageError } from '../config.js'
import {
  DEAD_LETTER_LIST_MAX,
  DeadLetterChoice,
  type DeadLetterOperations,
  DeadLetterPosition,
  DeadLetterQuery
} from './dead-letters.js'

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
  .pipe(DeadLetterQuery)

/** The part of the operator port that is about dead letters. */
export function addDeadLetters(app: FastifyInstance, deadLetters: DeadLetterOperations, inLines: InLines): void {
  app.get('/parked', (request) => {
    const asked = Asked.safeParse(request.query)
    if (asked.success) return deadLetters.list(asked.data)
    throw new UsageError(
      `The query takes topic, limit (1 to ${DEAD_LETTER_LIST_MAX}) and dropped (true or false); got ${JSON.stringify(request.query)}.`
    )
  })
  app.get('/parked/:topic/:epoch/:partition/:offset', (request) => {
    const Params = z.object({ topic: z.string(), ...NUMBERS }).pipe(DeadLetterPosition)
    const position = Params.safeParse(request.params)
    if (position.success) return deadLetters.show(position.data)
    throw new UsageError(`A position is /parked/<topic>/<epoch>/<partition>/<offset>; got ${request.url}.`)
  })
  app.post('/parked/drop', async (request) => await deadLetters.drop(await choiceOf(request.body)))
  app.post('/parked/retry', async (request, reply) => {
    const choice = await choiceOf(request.body)
    return inLines(reply, 'retrying dead letters failed', (tell) => deadLetters.retry(choice, tell))
  })
}

const NUMBERS = { epoch: z.coerce.number(), partition: z.coerce.number(), offset: z.coerce.number() }

async function choiceOf(body: unknown): Promise<DeadLetterChoice> {
  const sent = body instanceof Readable ? await text(body) : ''
  try {
    return DeadLetterChoice.parse(JSON.parse(sent))
  } catch {
    throw new UsageError(
      'The body, as application/octet-stream, is the JSON {"topic": …, "positions": "all" or a list of {"epoch", "partition", "offset"}}.'
    )
  }
}
