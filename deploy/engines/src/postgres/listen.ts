import { once } from 'node:events'
import { backoffMs, pause, withTimeout } from '@gamenet/schemas'
import pg from 'pg'

/** How often a connection that says nothing is asked whether it is still there, and how long it may take to answer. */
const BEAT_MS = 10_000
const BEAT_ANSWER_MS = 5000
const RETRY = { firstMs: 100, maxMs: 5000 }
/** A connection that does not even end. */
const END_MS = 1000

/** The name of a channel or table as it may stand in a statement, which takes no value there. */
export const plainName = (name: string): string => {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(name)) return name
  throw new TypeError(`${JSON.stringify(name)} is no plain name: a letter, then letters, digits and underscores`)
}

/**
 * Listens on a connection of its own, and makes another one when that breaks or no longer answers, for as long as it
 * takes.
 * @returns ends it
 */
export const listenToServer = (
  config: pg.ClientConfig,
  channel: string,
  onPayload: (payload: string) => void,
  onListening: () => void
): (() => Promise<void>) => {
  const statement = `LISTEN ${plainName(channel)}`
  const stopping = new AbortController()
  const run = async (): Promise<void> => {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      const client = new pg.Client({ ...config, keepAlive: true, query_timeout: BEAT_ANSWER_MS })
      const lost = new AbortController()
      client.on('error', () => lost.abort())
      client.on('end', () => lost.abort())
      client.on('notification', ({ payload }) => onPayload(payload ?? ''))
      try {
        await client.connect()
        await client.query(statement)
        failures = 0
        onListening()
        await beat(client, AbortSignal.any([lost.signal, stopping.signal]))
      } catch {
        // The next connection shows whether the cause persists.
      }
      await withTimeout(
        client.end().catch(() => undefined),
        END_MS,
        () => undefined
      )
      await pause(backoffMs(RETRY, failures + 1), stopping.signal, { ref: false })
    }
  }
  const running = run()
  return async () => {
    stopping.abort()
    await running
  }
}

/** Rejects when the connection does not answer any more; resolves when the signal says that it is over. */
const beat = async (client: pg.Client, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    await pause(BEAT_MS, signal, { ref: false })
    if (!signal.aborted) await Promise.race([client.query('SELECT 1'), once(signal, 'abort')])
  }
}
