import { pause } from '@gamenet/schemas'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'

/*
 * fault      a way in which a demo service answers badly, on request
 *
 * slow       the right answer, `slowMs` late
 * 500        an error, as a service reports it
 * garbage    200 with a page of HTML, as a proxy in front of a service answers
 * broken     200 with half of a JSON object
 * hang       no answer at all, until the caller gives up or the service closes
 * down       a connection that is reset before the answer
 */
const FAULTS = ['slow', '500', 'garbage', 'broken', 'hang', 'down'] as const
export type DemoFault = (typeof FAULTS)[number]

/** What `POST /_faults` takes: the next `count` calls of `path`, or of any (`*`), have the fault. 0 takes it back. */
export const DemoFaultOrder = z.strictObject({
  path: z.union([z.literal('*'), z.string().startsWith('/').max(200)]).default('*'),
  fault: z.enum(FAULTS),
  count: z.int().min(0).max(1_000_000).default(1)
})
export type DemoFaultOrder = z.infer<typeof DemoFaultOrder>

const PATHS_MAX = 100

/**
 * Lets a demo service answer badly: `POST /_faults` orders, `GET /_faults` lists what is ordered. A preflight is never
 * faulty, so that a browser sees the fault itself and not a refusal of its own. Gives the function that orders.
 */
export function addFaults(app: FastifyInstance, slowMs: number): (order: z.input<typeof DemoFaultOrder>) => void {
  const orders = new Map<string, DemoFaultOrder>()
  const closing = new AbortController()
  const order = (given: z.input<typeof DemoFaultOrder>) => {
    const { path, fault, count } = DemoFaultOrder.parse(given)
    orders.delete(path)
    if (count === 0) return
    if (orders.size >= PATHS_MAX) throw new Error(`Faults are ordered for ${PATHS_MAX} paths already; take one back.`)
    orders.set(path, { path, fault, count })
  }
  const take = (path: string): DemoFault | undefined => {
    const taken = orders.get(path) ?? orders.get('*')
    if (taken !== undefined) order({ ...taken, count: taken.count - 1 })
    return taken?.fault
  }
  app.addHook('preClose', async () => closing.abort())
  app.addHook('preHandler', async (request, reply) => {
    const path = request.url.split('?', 1)[0] ?? ''
    if (request.method === 'OPTIONS' || path === '/_faults') return
    const fault = take(path)
    if (fault !== undefined) await answerFaulty(fault, request, reply, { slowMs, signal: closing.signal })
  })
  app.get('/_faults', async () => [...orders.values()])
  app.post('/_faults', async (request, reply) => {
    const given = DemoFaultOrder.safeParse(request.body)
    if (!given.success) return reply.code(400).send({ error: z.prettifyError(given.error) })
    order(given.data)
    return reply.code(204).send()
  })
  return order
}

async function answerFaulty(
  fault: DemoFault,
  request: FastifyRequest,
  reply: FastifyReply,
  { slowMs, signal }: { readonly slowMs: number; readonly signal: AbortSignal }
): Promise<FastifyReply | undefined> {
  if (fault === 'slow') {
    await pause(slowMs, signal)
    return undefined
  }
  if (fault === '500') return reply.code(500).send({ error: 'The service is out of order.' })
  if (fault === 'garbage') return reply.type('text/html').send('<!doctype html><h1>Welcome</h1>')
  if (fault === 'broken') return reply.type('application/json').send('{"valid": true, "username": "a')
  reply.hijack()
  if (fault === 'down') request.socket.resetAndDestroy()
  return reply
}
