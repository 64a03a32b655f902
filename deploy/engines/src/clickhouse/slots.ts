import { Refusal } from '@gamenet/schemas'
import { ClickHouseError, type LaneStats } from './clickhouse.js'

/** A running job: its caller's answer, and the release of its slot. */
export type Running<Answer> = {
  readonly answer: Promise<Answer>
  /** Resolves when the engine is done, for an aborted job later than `answer`. Never rejects. */
  readonly released: Promise<void>
}

type Waiting<Slot> = { start(slot: Slot): void; drop(reason: unknown): void }

/** Assigns the connections of one lane in order of request; at most `queueMax` jobs wait. */
export type Slots<Slot> = {
  run<Answer>(job: (slot: Slot) => Running<Answer>, signal?: AbortSignal): Promise<Answer>
  stats(): LaneStats
  /** Refuses new and waiting jobs, with the first reason. */
  close(reason?: unknown): void
  /** Resolves when no slot is held. */
  idle(): Promise<void>
}

/**
 * Creates the slots of a lane. A job that finds `queueMax` others waiting is refused with `engine_busy`; a job that is
 * aborted while it waits leaves the queue at once.
 */
export const slotsOf = <Slot>(
  lane: string,
  slots: readonly Slot[],
  options: { readonly queueMax: number; readonly retryAfterSeconds: number }
): Slots<Slot> => {
  const free = [...slots]
  const waiting = new Set<Waiting<Slot>>()
  const count = { finished: 0, failed: 0, refused: 0, aborted: 0 }
  let idleWaiters: (() => void)[] = []
  let closed: { readonly reason: unknown } | undefined

  const release = (slot: Slot): void => {
    for (const next of waiting) {
      waiting.delete(next)
      next.start(slot)
      return
    }
    free.push(slot)
    if (free.length < slots.length) return
    for (const resolve of idleWaiters) resolve()
    idleWaiters = []
  }

  const occupy = async <Answer>(
    slot: Slot,
    job: (slot: Slot) => Running<Answer>,
    signal?: AbortSignal
  ): Promise<Answer> => {
    let running: Running<Answer>
    try {
      running = job(slot)
    } catch (error) {
      count.failed += 1
      release(slot)
      throw error
    }
    void running.released.then(() => release(slot))
    try {
      const answer = await running.answer
      count.finished += 1
      return answer
    } catch (error) {
      count.finished += 1
      count[signal?.aborted === true ? 'aborted' : 'failed'] += 1
      throw error
    }
  }

  const queue = (signal: AbortSignal | undefined): Promise<Slot> =>
    new Promise((resolve, reject) => {
      const leave = (): void => {
        waiting.delete(entry)
        count.aborted += 1
        reject(signal?.reason)
      }
      const entry: Waiting<Slot> = {
        start: (slot) => {
          signal?.removeEventListener('abort', leave)
          resolve(slot)
        },
        drop: (reason) => {
          signal?.removeEventListener('abort', leave)
          reject(reason)
        }
      }
      waiting.add(entry)
      signal?.addEventListener('abort', leave, { once: true })
    })

  return {
    run: async (job, signal) => {
      if (closed !== undefined) throw closed.reason
      if (signal?.aborted === true) {
        count.aborted += 1
        throw signal.reason
      }
      const slot = free.pop()
      if (slot !== undefined) return await occupy(slot, job, signal)
      if (waiting.size >= options.queueMax) {
        count.refused += 1
        throw new Refusal('engine_busy', [], { retryAfterSeconds: options.retryAfterSeconds })
      }
      return await occupy(await queue(signal), job, signal)
    },
    stats: () => ({ slots: slots.length, running: slots.length - free.length, waiting: waiting.size, ...count }),
    close: (reason = closedError(lane)) => {
      closed ??= { reason }
      for (const entry of waiting) entry.drop(closed.reason)
      waiting.clear()
    },
    idle: () => (free.length === slots.length ? Promise.resolve() : new Promise((resolve) => idleWaiters.push(resolve)))
  }
}

/** Resolves when the work has ended, whatever its outcome. */
export const ended = (work: Promise<unknown>): Promise<void> =>
  work.then(
    () => undefined,
    () => undefined
  )

const closedError = (lane: string): ClickHouseError =>
  new ClickHouseError(`The ${lane} lane of ClickHouse is closed; the service is stopping.`)
