import { randomUUID } from 'node:crypto'
import { abortable, backoffMs, pause, withSignals, withTimeout } from '@gamenet/schemas'
import pg from 'pg'
import type { Queries } from './postgres.js'

/** Interval of checks of a silent connection, and the limit of an answer. */
const BEAT_MS = 10_000
const BEAT_ANSWER_MS = 5000
const RETRY = { firstMs: 100, maxMs: 5000 }
/** Limit for ending a connection. */
const END_MS = 1000

/** Returns the name of a channel or table for a statement, which permits no parameter there. */
export const plainName = (name: string): string => {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(name)) return name
  throw new TypeError(`${JSON.stringify(name)} is not a plain name: a letter, then letters, digits and underscores`)
}

/** Longest wait for the listener's own notification; if it does not arrive, the interval and time limit of polls. */
const PROOF_MS = 3000
const POLL_MS = 1000
const POLLING_MS = 60_000
/** A sequence advances before its transaction commits, which may be this many polls later. */
const POLLS_AFTER_CHANGE = 30

export type ListenNeeds = {
  readonly config: pg.ClientConfig
  /** The pool, on which notifications are sent. */
  readonly queries: Queries
  /** A statement whose rows differ after every change that the channel announces. */
  readonly poll: string | undefined
  /** Called when notifications begin to arrive, and when they no longer do. */
  onDelivery(isDelivered: boolean): void
}

/**
 * Listens on a separate connection, and replaces a connection that breaks or no longer answers. A pooler accepts LISTEN
 * and delivers nothing, so the listener notifies itself first; if the notification does not arrive, it polls instead.
 * @returns a function that ends it
 */
export const listenToServer = (
  needs: ListenNeeds,
  channel: string,
  onPayload: (payload: string) => void,
  onListening: () => void
): (() => Promise<void>) => {
  const statement = `LISTEN ${plainName(channel)}`
  const stopping = new AbortController()
  const listenOnce = async (client: pg.Client, ending: AbortController): Promise<boolean> => {
    const { signal: ended } = ending
    client.on('error', () => ending.abort())
    client.on('end', () => ending.abort())
    const proof = `proof_${randomUUID().replaceAll('-', '')}`
    const delivered = new AbortController()
    client.on('notification', ({ channel: of, payload }) =>
      of === proof ? delivered.abort() : onPayload(payload ?? '')
    )
    await client.connect()
    await client.query(`${statement}; LISTEN ${proof}`)
    await needs.queries.query('SELECT pg_notify($1, $2)', [proof, ''])
    await pause(PROOF_MS, AbortSignal.any([delivered.signal, ended]), { ref: false })
    onListening()
    needs.onDelivery(delivered.signal.aborted)
    if (delivered.signal.aborted) await beat(client, ended)
    return delivered.signal.aborted || ended.aborted
  }
  const run = async (): Promise<void> => {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      const client = new pg.Client({ ...needs.config, keepAlive: true, query_timeout: BEAT_ANSWER_MS })
      let isDelivered = true
      try {
        isDelivered = await withSignals([stopping.signal], (ending) => listenOnce(client, ending))
        failures = 0
      } catch {
        // The next connection shows whether the cause persists.
      }
      needs.onDelivery(false)
      await withTimeout(
        client.end().catch(() => undefined),
        END_MS,
        () => undefined
      )
      if (!isDelivered) await pollInstead(needs, onListening, stopping.signal)
      await pause(backoffMs(RETRY, failures + 1), stopping.signal, { ref: false })
    }
  }
  const running = run()
  return async () => {
    stopping.abort()
    await running
  }
}

/** Calls `onChange` after every change, for a while. */
const pollInstead = async (
  { queries, poll }: ListenNeeds,
  onChange: () => void,
  signal: AbortSignal
): Promise<void> => {
  const begun = performance.now()
  let before: string | undefined
  let due = 0
  while (!signal.aborted && performance.now() - begun < POLLING_MS) {
    // A server that does not answer has stored nothing new.
    const rows = await queries.query(poll ?? 'SELECT clock_timestamp()').catch(() => undefined)
    const now = JSON.stringify(rows)
    if (now !== undefined && now !== before) {
      // The first time, something may have changed since the caller last looked.
      due = before === undefined ? 1 : POLLS_AFTER_CHANGE
      before = now
    }
    if (due > 0) {
      due -= 1
      onChange()
    }
    await pause(POLL_MS, signal, { ref: false })
  }
}

/** Rejects when the connection no longer answers; resolves when the signal aborts. */
const beat = async (client: pg.Client, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    await pause(BEAT_MS, signal, { ref: false })
    if (signal.aborted) return
    await abortable(signal, client.query('SELECT 1')).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  }
}
