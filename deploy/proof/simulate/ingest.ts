import { createRelay, publish } from '@gamenet/ingest'
import { boardsSource, createBoardMetrics, type Reader } from '@gamenet/ingest/internals'
import { readSide } from '@gamenet/projector'
import { instantOf, type TitleCounted, titleCountTopic } from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { publishImport } from './imports.js'
import type { Place } from './place.js'
import type { Process, Running } from './process.js'
import { loggerOf } from './projector.js'
import { TITLE_IDS } from './simulated.js'
import { queriesIn, storeIn } from './store.js'
import { LATER_TYPE } from './tables/newer-program.js'

const RELAY_POLL_MS = 1500
const BOARDS_EVERY_MS = 3000
const IMPORT_SHARE = 0.3
const UNREADABLE_SHARE = 0.2
const AGAIN_SHARE = 0.6

/** Boards, counts, imports and the relay of the outbox. */
export function runIngest(place: Place, process: Process): Running {
  const { world, tables, log, postgres, upstream, bug } = place
  const { time, chance } = world
  const { life } = process
  const stopping = new AbortController()
  const registry = new Registry()
  const publishing = bug.publishedLog({ append: (topic, messages) => log.append(topic, messages) })
  const relay = createRelay({
    outbox: async () => postgres.relayed,
    log: bug.relayedLog(publishing),
    people: postgres.people,
    registry,
    logger: loggerOf(world) as never,
    pollMs: RELAY_POLL_MS
  })
  const boards = boardsSource({
    parsing: upstream.parsing,
    ...readSide(storeIn(world, tables, {}, false)),
    tables: queriesIn(world, tables),
    log: { extents: (topic) => log.extents(topic) },
    leases: async () => bug.leases(postgres.leases),
    shortestS: postgres.shortestS,
    random: () => chance.number(),
    metrics: createBoardMetrics(registry)
  })
  const reader: Reader = {
    fetcher: upstream.fetcher,
    publish: (publication) => publication.publish(publishing, { source: '/scrape/boards' })
  }
  const every = async (ms: number, work: () => Promise<unknown>) => {
    while (!stopping.signal.aborted) {
      await time.pause(life, ms / 2 + chance.below(ms))
      await work().catch((error: Error) => world.note(`continues after: ${error.message}`, life))
    }
  }
  relay.start()
  const loops = [
    every(BOARDS_EVERY_MS, () => boards.read(reader, stopping.signal)),
    every(place.conditions.countsEveryMs, () => publishCounts(place))
  ]
  return {
    stop: async () => {
      stopping.abort()
      await relay.stop()
      await Promise.all(loops)
    }
  }
}

/** A page of counts, sometimes a file, or an unreadable message. */
async function publishCounts(place: Place): Promise<void> {
  const { world, log, acknowledged } = place
  const { chance } = world
  if (!place.isActive && !place.isTrickling) return
  if (place.isActive && chance.happens(UNREADABLE_SHARE)) {
    const headers = {
      ce_type: chance.oneOf(['gamenet.title-count.v9', 'gamenet.title-count.v1', LATER_TYPE, LATER_TYPE])
    }
    const event = {
      titleId: chance.oneOf(TITLE_IDS),
      observedAt: instantOf(Math.floor(Date.now() / 1000) * 1000),
      online: 7
    }
    const value = headers.ce_type === LATER_TYPE ? JSON.stringify(event) : '{"no":"event"}'
    await log.append(titleCountTopic.name, [{ key: event.titleId, headers, value }])
    return
  }
  if (place.isActive && chance.happens(IMPORT_SHARE)) return await publishImport(place)
  const atMs = Math.floor(Date.now() / 1000) * 1000
  const events: TitleCounted[] = TITLE_IDS.map((titleId) => {
    return { titleId, observedAt: instantOf(atMs), online: chance.below(50) }
  })
  const publishOnce = async () => {
    await publish(
      place.bug.publishedLog({ append: (topic, messages) => log.append(topic, messages) }),
      titleCountTopic,
      events,
      { source: '/scrape/home' }
    )
    for (const event of events) acknowledged.add(JSON.stringify(event))
  }
  await publishOnce().catch(async (error: unknown) => {
    // A publisher without an acknowledgement publishes the same events again.
    if (!chance.happens(AGAIN_SHARE)) throw error
    await publishOnce()
  })
}
