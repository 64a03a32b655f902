import { LogDamaged } from '@gamenet/engines/log'
import type { SourceStatus } from '@gamenet/ingest'
import type { Logger } from 'pino'
import type { Engines } from '../stores/engines.js'
import type { Dependencies } from './dependencies.js'

/** A page that answers needs less, also after its retries. */
const SILENT_MS = 30_000

export type UpstreamNeeds = {
  readonly url: string
  /** The state of the source `network`, and how long the process has run. */
  readonly network: () => Pick<SourceStatus, 'lastRun'> | undefined
  readonly sinceStartMs: () => number
  readonly say: (sentence: string) => void
}

/**
 * Returns a look at the source, which says once that the network's page cannot be read, which a new user otherwise
 * sees only as empty answers, and when it can be read again.
 */
export function upstreamNotice({ url, network, sinceStartMs, say }: UpstreamNeeds): () => void {
  let isUnread = false
  return () => {
    const ran = network()?.lastRun ?? undefined
    const isFailing = ran === undefined ? sinceStartMs() > SILENT_MS : ran.outcome === 'failed'
    if (isFailing === isUnread) return
    isUnread = isFailing
    say(
      isFailing
        ? `The network's page cannot be read: ${ran?.reason ?? `${url} does not answer`}. No new numbers come until ` +
            'then. Check that UPSTREAM_URL is the address of the network; without it, `npm start` shows a demo network.'
        : `The network's page ${url} can be read again.`
    )
  }
}

/**
 * Reads the keys of the embedded log in the background, after the process before ended without a stop, as in a power
 * cut. A damaged page may end this process later; the start after that reads the keys first.
 * @returns how to stop it
 */
export function readUncleanLog({
  engines: { directory, log },
  damageMet,
  logger
}: Pick<Dependencies, 'damageMet'> & {
  readonly engines: Pick<Engines, 'directory' | 'log'>
  readonly logger: Pick<Logger, 'error' | 'warn'>
}): () => void {
  const stop = new AbortController()
  const read = async () => {
    if (directory === undefined || directory.unclean === undefined) return
    await log.files?.readApart('keys', stop.signal)
    await directory.trustLog()
  }
  read().catch((error: unknown) => {
    if (stop.signal.aborted) return
    if (!(error instanceof LogDamaged)) return logger.warn({ err: error }, 'the keys of the log could not be read')
    logger.error({ err: error }, error.message)
    damageMet.add(`${error.what} (gamenet verify)`)
  })
  return () => stop.abort()
}

/** The last days of Node's lines: https://github.com/nodejs/Release. */
const LAST_DAY: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  21: '2024-06-01',
  22: '2027-04-30',
  23: '2025-06-01',
  24: '2028-04-30',
  25: '2026-06-01'
}

/** Returns a sentence about a version of Node that gets no more fixes; undefined for a supported or a later one. */
export function endOfSupport(version: string, nowMs: number): string | undefined {
  const lastDay = LAST_DAY[Number.parseInt(version, 10)]
  if (lastDay === undefined || nowMs < Date.parse(lastDay) + 86_400_000) return undefined
  return `Node ${version} gets no security fixes since ${lastDay}. The service runs, but Node 24 is advised.`
}
