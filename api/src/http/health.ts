import { Refusal } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'

/** Whether the process can do its work; if not, the reason, as the end of "The service is not ready: …". */
export type Readiness =
  | {
      readonly ok: true
      /**
       * Engines that do not answer, and disks that are full, while the process continues: "log (Kafka) cannot be
       * reached".
       */
      readonly degraded?: readonly string[]
      /** Tables whose lost rows are being restored. Requests that need them get 503; all others are answered. */
      readonly repairing?: readonly string[]
    }
  | { readonly ok: false; readonly reason: string }

/** `/healthz`: the process answers. `/readyz`: it can answer, if only with cached answers. */
export function addHealth(app: FastifyInstance, ready: () => Promise<Readiness>): void {
  app.get('/healthz', async (_request, reply) => reply.header('Cache-Control', 'no-store').send({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    const readiness = await ready()
    if (!readiness.ok) throw new Refusal('not_ready', [readiness.reason], { retryAfterSeconds: 1 })
    const { degraded = [], repairing = [] } = readiness
    return reply.header('Cache-Control', 'no-store').send({
      status: 'ready',
      ...(degraded.length === 0 ? {} : { degraded }),
      ...(repairing.length === 0 ? {} : { repairing })
    })
  })
}
