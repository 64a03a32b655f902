import { randomUUID } from 'node:crypto'
import { type ScrapeSource, type WriteSide, withTimeout } from '@gamenet/schemas'
import { acquireLease, releaseLeases } from '../ports/leases.js'

/** Periods for which the scraping of a source stays with one process; after its death nobody scrapes it for so long. */
const LEASED_PERIODS = 1.5
/** Longest wait for a lease before a run. */
const TIMEOUT_MS = 5_000

/** Divides the scheduled runs of several processes by source. Boards have leases of their own. */
export function scrapeLeases(options: {
  readonly writes: () => Promise<WriteSide>
  readonly periods: Readonly<Record<ScrapeSource, number>>
}) {
  const holder = randomUUID()
  let leased: WriteSide | undefined
  const acquire = async (source: ScrapeSource) => {
    leased = await options.writes()
    return await acquireLease(leased, source, holder, LEASED_PERIODS * options.periods[source])
  }
  return {
    /**
     * Returns whether this process runs a source that is due. Without the write side every process does: two samples
     * are better than none. Never rejects.
     */
    async isOwn(source: ScrapeSource): Promise<boolean> {
      if (source === 'boards') return true
      return await withTimeout(acquire(source), TIMEOUT_MS, () => true).catch(() => true)
    },
    /** Leaves the sources to other processes. */
    release: async () => leased && (await releaseLeases(leased, holder))
  }
}
