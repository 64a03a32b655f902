import type { SourceStatus } from '@gamenet/ingest'

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
