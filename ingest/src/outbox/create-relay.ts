import { backoffMs, type Logger, withTimeout } from '@gamenet/schemas'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { People } from '../people/people.js'
import type { Log } from '../ports/log.js'
import type { Outbox } from './outbox.js'
import { type Round, relayOnce } from './relay-outbox.js'

/** How often the outbox is polled without a notification: another relay may have died in its round. */
const POLL_MS = 5000
/** Delay from a notification to its round, which batches changes that arrive together. */
const GATHER_MS = 20
const STOP_MS = 3000
const RETRY = { firstMs: 250, maxMs: 5000 }
/** Maximum number of remembered rows without a valid event. */
const UNREADABLE_MAX = 10_000

export type RelayOptions = {
  /** Opens the write side with its newest schema. Called in each round. */
  readonly outbox: () => Promise<Outbox>
  readonly log: Log
  readonly people: People
  readonly registry: Registry
  readonly logger: Logger
  /** Called after each round, with the error of one that failed. */
  readonly onRound?: (error?: unknown) => void
  /** Default: {@link POLL_MS}. */
  readonly pollMs?: number
}

/**
 * Relays the outbox until it is stopped; failures are retried. Any number of relays may run in any number of processes;
 * one works at a time.
 */
export function createRelay(options: RelayOptions) {
  const metrics = relayMetrics(options.registry)
  const unreadable = new Set<string>()
  const bell = createBell()
  let isStopping = false
  let running: Promise<void> | undefined

  const round = async (): Promise<Round> => {
    const { log, people, logger } = options
    const onUnreadable: Parameters<typeof relayOnce>[0]['onUnreadable'] = (rows) => {
      logger.error(
        { rows },
        'rows of the outbox are not valid events; they stay there and are not relayed: this is a defect'
      )
      for (const { id } of rows.slice(0, UNREADABLE_MAX - unreadable.size)) unreadable.add(id)
      metrics.unreadable.set(unreadable.size)
    }
    return await relayOnce({ outbox: await options.outbox(), log, people, onUnreadable }, unreadable)
  }
  const run = async (): Promise<void> => {
    for (let failures = 0; !isStopping; ) {
      try {
        const { relayed, outcome } = await round()
        failures = 0
        metrics.failing.set(0)
        options.onRound?.()
        metrics.relayed.inc(relayed)
        if (outcome === 'full') continue
        await bell.rung(options.pollMs ?? POLL_MS)
        await bell.passed(GATHER_MS)
      } catch (error) {
        metrics.failing.set(1)
        options.onRound?.(error)
        options.logger.warn({ err: error }, 'the outbox cannot be relayed; retrying')
        failures += 1
        await bell.passed(backoffMs(RETRY, failures))
      }
    }
  }
  return {
    start() {
      running ??= run()
    },
    /** Starts the next round without waiting for the poll. A stopped relay ignores it. */
    wake: bell.ring,
    /** Starts no more rounds and waits at most 3 s for the current one. An abandoned round loses nothing. */
    async stop() {
      isStopping = true
      bell.end()
      if (running !== undefined) await withTimeout(running, STOP_MS, () => undefined)
    }
  }
}

/** Wakes a loop between two rounds. */
function createBell() {
  let wasRung = false
  let hasEnded = false
  let wakeUp = (): void => undefined
  const until = async (ms: number, isOver: () => boolean): Promise<void> => {
    if (isOver()) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      wakeUp = () => {
        if (!isOver()) return
        clearTimeout(timer)
        resolve()
      }
    })
    wakeUp = () => undefined
  }
  return {
    ring() {
      wasRung = true
      wakeUp()
    },
    end() {
      hasEnded = true
      wakeUp()
    },
    /** Resolves at a notification, or at once if one arrived since the last call, and after at most `ms`. */
    async rung(ms: number) {
      await until(ms, () => wasRung || hasEnded)
      wasRung = false
    },
    /** Resolves after `ms`, even if notified. */
    passed: (ms: number) => until(ms, () => hasEnded)
  }
}

function relayMetrics(registry: Registry) {
  const registers = [registry]
  return {
    relayed: new Counter({
      name: 'gamenet_outbox_relayed_total',
      help: 'Changes of the write side that this process published to the log',
      registers
    }),
    failing: new Gauge({
      name: 'gamenet_outbox_failing',
      help: 'Alarm: 1 while the last round of the relay failed, so that changes do not reach the log',
      registers
    }),
    unreadable: new Gauge({
      name: 'gamenet_outbox_unreadable_rows',
      help: 'Alarm: rows of the outbox that are not valid events, and stay there',
      registers
    })
  }
}
