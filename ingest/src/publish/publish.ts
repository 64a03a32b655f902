import type { LogMessage, Provenance, Topic } from '@gamenet/schemas'
import { encodeEvents } from '../people/encode-events.js'
import type { People } from '../people/people.js'
import type { Log } from '../ports/log.js'

/** Maximum number of events per append: about 3 MB of JSON, well below the limit of a Kafka request. */
const APPEND_EVENTS_MAX = 10_000

/**
 * Appends events to their topic in order, each chunk after the log has stored the previous one. Rejects with the log's
 * error; the chunks before the failed one are then in the log. Publishing all of them again is safe: an event keeps its
 * id. Events about people need `people`; those about erased persons are left out.
 */
export async function publish<Event>(
  log: Log,
  topic: Topic<Event>,
  events: readonly Event[],
  provenance: Provenance,
  people?: People
): Promise<void> {
  for (let first = 0; first < events.length; first += APPEND_EVENTS_MAX) {
    const chunk = await encodeEvents(topic, events.slice(first, first + APPEND_EVENTS_MAX), provenance, people)
    if (chunk.length > 0) await log.append(topic.name, chunk)
  }
}

/** Events of one topic, ready to be published. Hides the event's type, so that a list may contain several topics. */
export type Publication = {
  readonly topic: string
  readonly count: number
  publish(log: Log, provenance: Provenance, people?: People): Promise<void>
}

/** Binds events to their topic for a later {@link publish}. */
export function publication<Event>(topic: Topic<Event>, events: readonly Event[]): Publication {
  return {
    topic: topic.name,
    count: events.length,
    publish: (log, provenance, people) => publish(log, topic, events, provenance, people)
  }
}

/** Wraps a log to count the appended messages by topic. */
export function countingLog(log: Log, count: (topic: string, messages: number) => void): Log {
  return {
    append: async (topic: string, messages: readonly LogMessage[]) => {
      await log.append(topic, messages)
      count(topic, messages.length)
    }
  }
}
