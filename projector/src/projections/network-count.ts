import { networkCountTopic } from '@gamenet/schemas'
import { HOUR_MS, INSTANT_MS } from '../store/projection.js'
import { sqlProjection } from './sql-projection.js'

/** One row per metric and instant. A count that the event lacks changes nothing. */
export const networkCount = sqlProjection({
  name: 'network-count',
  from: networkCountTopic,
  columns: ['metric', 'ts', 'value', 'position'],
  select: `
    SELECT m.1, e.observed_at, assumeNotNull(m.2), e.position
    FROM {event_network_count: Identifier} AS e
    ARRAY JOIN [('registered', e.registered), ('online', e.online), ('lobbies', e.lobbies)] AS m
    WHERE {range} AND m.2 IS NOT NULL`,
  touches: { key: `'*'`, bucketMs: INSTANT_MS }
})

/** The hours that events touched, of every metric: `max_at` is the first instant of the maximum. */
export const networkCountHour = sqlProjection({
  name: 'network-count-hour',
  from: networkCountTopic,
  columns: ['metric', 'hour', 'min', 'max', 'max_at', 'sum', 'samples', 'last', 'last_at', 'position'],
  after: networkCount.name,
  select: `
    SELECT c.metric, toStartOfHour(c.ts), min(c.value), max(c.value), argMin(c.ts, (-toInt64(c.value), c.ts)),
      sum(c.value), count(), argMax(c.value, c.ts), max(c.ts), max(c.position)
    FROM {network_count: Identifier} AS c FINAL
    WHERE toStartOfHour(c.ts) IN (SELECT toStartOfHour(e.observed_at) FROM {event_network_count: Identifier} AS e
      WHERE {range})
    GROUP BY c.metric, toStartOfHour(c.ts)`,
  touches: { key: `'*'`, bucketMs: HOUR_MS }
})
