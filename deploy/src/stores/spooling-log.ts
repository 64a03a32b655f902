import type { Parcel, Spool, SpoolState } from '@gamenet/engines/log'
import type { Log } from '@gamenet/ingest'
import {
  abortable,
  type Backoff,
  backoffMs,
  errorMessage,
  Failure,
  isFailure,
  type LogMessage,
  Mutex,
  matchListTopic,
  networkCountTopic,
  type PartitionExtent,
  pause,
  presenceTopic,
  scrapeTopic,
  shownInstant,
  titleCountTopic,
  titleTopic,
  withTimeout
} from '@gamenet/schemas'
import type { Logger } from 'pino'
import { Counter, Gauge, type Registry } from 'prom-client'

/**
 * Topics of observations that upstream shows only once. Not among them: boards, which are compared with what their last
 * visit appended, and which show their changes later as well; ratings and profiles, which wait in the outbox; unlocks,
 * which are evaluated again; imports, which are resumed.
 */
export const SPOOLED_TOPICS: ReadonlySet<string> = new Set(
  [networkCountTopic, titleCountTopic, titleTopic, matchListTopic, presenceTopic, scrapeTopic].map(({ name }) => name)
)

const RETRY: Backoff = { firstMs: 500, maxMs: 5000 }
/**
 * Longer than an append takes under load. The log continues to retry a spooled append; a message stored twice has one
 * id.
 */
const PATIENCE_MS = 10_000
/** Long enough for a responsive log; an unavailable one must not delay the end of the service. */
const LAST_APPEND_MS = 1000

type ExtentsLog = Log & { extents(topic: string): Promise<readonly PartitionExtent[]> }

/** The state of a spool, for status. */
export type SpoolStatus = {
  readonly bytes: number
  readonly bytesMax: number
  readonly messages: number
  readonly oldestAt: string | null
  /** Why messages wait; null if none do. */
  readonly reason: string | null
}

export type SpoolingLog = ExtentsLog & {
  status(): SpoolStatus
  /** Before the end of the service: appends that the log does not answer within a second are spooled. */
  hasten(): void
  /** Stops draining; the next process that opens the spool drains the rest. */
  close(): Promise<void>
}

export type SpoolingNeeds = {
  readonly log: ExtentsLog
  readonly spool: Spool
  readonly registry: Registry
  readonly logger: Pick<Logger, 'info' | 'warn'>
  /** Pauses after failed drains; for tests. */
  readonly retry?: Backoff
}

/**
 * A log whose appends to {@link SPOOLED_TOPICS} wait on the disk while the log is unavailable, and are published in
 * order, before newer ones, when it is back: at least once, with the same ids. They are acknowledged when they are on
 * the disk. While any wait, the ends of these topics are unknown, and `extents` rejects for them.
 */
export function spoolingLog({ log, spool, registry, logger, retry = RETRY }: SpoolingNeeds): SpoolingLog {
  const closing = new AbortController()
  /** Aborts the waits for the log. */
  const cut = new AbortController()
  const metrics = spoolMetrics(registry, spool)
  const mutex = new Mutex()
  let draining: Promise<void> | undefined
  let reason: string | null = null
  let lastAppend: NodeJS.Timeout | undefined

  const drainAll = async (): Promise<void> => {
    for (let failures = 0; !closing.signal.aborted; ) {
      const parcels = await spool.oldest()
      if (parcels.length === 0) break
      try {
        // Many at once: one by one, draining into a slow log would be slower than scraping.
        const appends = [...byTopic(parcels)].map(([topic, messages]) => log.append(topic, messages))
        await abortable(cut.signal, Promise.all(appends))
        await spool.remove(parcels)
        for (const { messages } of parcels) metrics.drained.inc(messages.length)
        failures = 0
      } catch (error) {
        reason = errorMessage(error)
        failures += 1
        await pause(backoffMs(retry, failures), closing.signal)
      }
    }
    if (closing.signal.aborted) return
    reason = null
    logger.warn('the log is available again and has all messages of the spool')
  }
  const startDraining = (): void => {
    if (closing.signal.aborted) return
    draining ??= drainAll()
      .catch((error: unknown) => {
        reason = errorMessage(error)
      })
      .finally(() => {
        draining = undefined
      })
  }
  const appendOrSpool = async (topic: string, messages: readonly LogMessage[]): Promise<void> => {
    if (spool.state().parcels === 0) {
      try {
        return await withTimeout(abortable(cut.signal, log.append(topic, messages)), PATIENCE_MS, () => {
          throw unanswered()
        })
      } catch (error) {
        if (!isFailure(error, 'log_unreachable')) throw error
        reason = error.message
        logger.warn({ reason }, 'the log is unavailable: scraped events wait in the spool')
      }
    }
    try {
      await spool.put(topic, messages)
    } catch (error) {
      metrics.refused.inc(messages.length)
      throw error
    }
    metrics.spooled.inc({ topic }, messages.length)
    startDraining()
  }
  if (spool.state().parcels > 0) startDraining()
  return {
    append(topic, messages) {
      if (!SPOOLED_TOPICS.has(topic)) return log.append(topic, messages)
      return mutex.run(() => appendOrSpool(topic, messages))
    },
    async extents(topic) {
      const { messages } = spool.state()
      if (SPOOLED_TOPICS.has(topic) && messages > 0)
        throw new Failure(
          'log_unreachable',
          `${messages} messages wait in the spool; the end of ${topic} is unknown until they are published`
        )
      return await log.extents(topic)
    },
    status: () => statusOf(spool, reason),
    hasten() {
      closing.abort()
      lastAppend ??= setTimeout(() => cut.abort(unanswered()), LAST_APPEND_MS)
    },
    async close() {
      closing.abort()
      cut.abort(unanswered())
      clearTimeout(lastAppend)
      await mutex.idle()
      await draining
      await spool.close()
    }
  }
}

function statusOf(spool: Spool, reason: string | null): SpoolStatus {
  const { bytes, bytesMax, messages, oldestAtMs } = spool.state()
  const oldestAt = oldestAtMs === null ? null : shownInstant(oldestAtMs)
  return { bytes, bytesMax, messages, oldestAt, reason: messages === 0 ? null : reason }
}

/** Groups messages by topic, in order. */
function byTopic(parcels: readonly Parcel[]): Map<string, LogMessage[]> {
  const topics = new Map<string, LogMessage[]>()
  for (const { topic, messages } of parcels) topics.set(topic, [...(topics.get(topic) ?? []), ...messages])
  return topics
}

const unanswered = () => new Failure('log_unreachable', 'the log has not answered in time')

function spoolMetrics(registry: Registry, spool: Spool) {
  const registers = [registry]
  const gauge = (name: string, help: string, value: (state: SpoolState) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value(spool.state()))
      }
    })
  gauge(
    'gamenet_spool_messages',
    'Alarm: messages that wait on the disk for an unavailable log',
    (state) => state.messages
  )
  gauge('gamenet_spool_bytes', 'Bytes that wait in the spool', (state) => state.bytes)
  gauge('gamenet_spool_bytes_max', 'SPOOL_BYTES_MAX', (state) => state.bytesMax)
  gauge('gamenet_spool_oldest_seconds', 'Age of the oldest waiting message; 0 without one', ({ oldestAtMs }) =>
    oldestAtMs === null ? 0 : Math.max(0, (Date.now() - oldestAtMs) / 1000)
  )
  return {
    spooled: new Counter({
      name: 'gamenet_spooled_messages_total',
      help: 'Messages put into the spool',
      labelNames: ['topic'],
      registers
    }),
    drained: new Counter({
      name: 'gamenet_spool_drained_messages_total',
      help: 'Messages published from the spool to the log',
      registers
    }),
    refused: new Counter({
      name: 'gamenet_spool_refused_messages_total',
      help: 'Alarm: messages that are lost because the spool was full or not writable',
      registers
    })
  }
}
