import { z } from 'zod'

/*
 * fault      a faulty answer of the network, on request
 *
 * slow       the whole answer, but its body takes `slowMs`
 * 500        an error page
 * broken     a page that ends in the middle of a tag, with a matching Content-Length
 * truncated  a connection that closes after half of the Content-Length
 * hang       no answer at all, until the reader gives up or the network closes
 * reset      a connection that is reset before the answer
 */
export const FAULTS = ['slow', '500', 'broken', 'truncated', 'hang', 'reset'] as const
export type Fault = (typeof FAULTS)[number]

/**
 * The body of `POST /_faults`: the next `count` answers of `path` (without a query) have the fault. A count of 0
 * cancels it.
 */
export const FaultOrder = z.object({
  path: z.string().startsWith('/').max(2048),
  fault: z.enum(FAULTS),
  count: z.int().min(0).max(1_000_000).default(1)
})
export type FaultOrder = z.infer<typeof FaultOrder>

const PATHS_MAX = 1000

/** The pending faults per path; a later order for a path replaces the earlier one. */
export class FaultBook {
  readonly #orders = new Map<string, FaultOrder>()

  order(order: FaultOrder): void {
    this.#orders.delete(order.path)
    if (order.count === 0) return
    if (this.#orders.size >= PATHS_MAX) {
      throw new Error(`Faults are ordered for ${PATHS_MAX} paths already; cancel one with a count of 0 first.`)
    }
    this.#orders.set(order.path, order)
  }

  /** Returns the fault of the next answer of a path, and counts it as used. */
  take(path: string): Fault | undefined {
    const order = this.#orders.get(path)
    if (order === undefined) return undefined
    this.order({ ...order, count: order.count - 1 })
    return order.fault
  }

  list(): FaultOrder[] {
    return [...this.#orders.values()]
  }
}
