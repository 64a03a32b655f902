import { createIngest, createRelay, type Ingest, outboxOf } from '@gamenet/ingest'
import { lateReader } from '@gamenet/projector'
import { CHANGED_CHANNEL } from '@gamenet/schemas'
import { scrapePeriods } from '../config.js'
import { failureSince } from '../stores/failure-since.js'
import { VERSION } from '../version.js'
import type { Needs } from './dependencies.js'
import { publicUrl } from './listen.js'

const REQUESTS_PER_SECOND = 2
/** The demo network runs on this machine. */
const DEMO_REQUESTS_PER_SECOND = 50

/** Creates the scrapers of this process; they do nothing until they are started. */
export function createServiceIngest(needs: Needs): Ingest {
  const { config, engines, tables, registry, logger, people, demo, readSide, spool } = needs
  return createIngest({
    log: spool ?? engines.log,
    tables,
    serving: readSide.serving,
    positions: readSide.positions,
    writes: () => engines.writes(),
    people,
    upstreamUrl: config.UPSTREAM_URL ?? demo?.url ?? '',
    periods: scrapePeriods(config),
    achievements: {
      late: lateReader(engines.store, 'achievements'),
      isHistoryMissing: () => demo?.isUsersHistoryMissing() ?? false
    },
    requestsPerSecond:
      config.SCRAPE_REQUESTS_PER_SECOND ?? (demo === undefined ? REQUESTS_PER_SECOND : DEMO_REQUESTS_PER_SECOND),
    userAgent: `gamenet-stats/${VERSION} (+${publicUrl(config)})`,
    registry,
    logger
  })
}

/** Publishes the outbox until it is stopped. `gamenet status` names its failure until a round succeeds. */
export function startRelay({ engines, people, registry, logger, damageMet }: Needs): { stop(): Promise<void> } {
  const onRound = failureSince(damageMet, 'the outbox cannot be relayed')
  const outbox = async () => outboxOf(await engines.writes())
  const relay = createRelay({ outbox, log: engines.log, people, registry, logger, onRound })
  relay.start()
  const unlisten = engines.postgres?.listen(CHANGED_CHANNEL, relay.wake, relay.wake)
  return {
    stop: async () => {
      await unlisten?.()
      await relay.stop()
    }
  }
}
