import { networkCountTopic } from '@gamenet/schemas'
import { HOUR_MS, type Projection } from '../store/projection.js'
import { networkCount } from './network-count.js'

/** The hours that events touched, of every metric: `max_at` is the first instant of the maximum. */
export const networkCountHour: Projection = {
  name: 'network-count-hour',
  from: networkCountTopic,
  into: 'network_count_hour',
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
}
