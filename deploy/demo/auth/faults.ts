import { pause } from '@gamenet/schemas'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'

/*
 * fault      a faulty answer of a demo service, on request
 *
 * slow       the correct answer, delayed by `slowMs`
 * 500        an error, as a service reports it
 * garbage    200 with a page of HTML, as a proxy in front of a service answers
 * broken     200 with half of a JSON object
 * hang       no answer at all, until the caller gives up or the service closes
 * down       a connection that is reset before the answer
 */
const FAULTS = ['slow', '500', 'garbage', 'broken', 'hang', 'down'] as const
export type DemoFault = (typeof FAULTS)[number]

/**
 * The body of `POST /_faults`: the next `count` calls of `path`, or of any path (`*`), have the fault. 0 cancels it.
 */
export const DemoFaultOrder = z.strictObject({
  path: z.union([z.literal('*'), z.string().startsWith('/').max(200)]).default('*'),
  fault: z.enum(FAULTS),
  count: z.int().min(0).max(1_000_000).default(1)
})
export type DemoFaultOrder = z.infer<typeof DemoFaultOrder>

const PATHS_MAX = 100

/**
 * Adds faults to a demo service: `POST /_faults` orders them, `GET /_faults` lists the pending ones. A preflight is
 * never faulty, so that a browser sees the fault itself and does not refuse the request. Returns the function that
 * orders a fault.
 */
export function addFaults(app: FastifyInstance, slowMs: number): (order: z.input<typeof DemoFaultOrder>) => void {
  const orders = new Map<string, DemoFaultOrder>()
  const closing = new AbortController()
  const order = (given: z.input<typeof DemoFaultOrder>) => {
    const { path, fault, count } = DemoFaultOrder.parse(given)
    orders.delete(path)
    if (count === 0) return
    if (orders.size >= PATHS_MAX) throw new Error(`Faults are ordered for ${PATHS_MAX} paths already; cancel one.`)
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
