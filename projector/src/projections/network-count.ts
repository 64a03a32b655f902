import { networkCountTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** One row per metric and instant. A count that the event lacks changes nothing. */
export const networkCount: Projection = {
  name: 'network-count',
  from: networkCountTopic,
  into: 'network_count',
  columns: ['metric', 'ts', 'value', 'position'],
  select: `
    SELECT m.1, e.observed_at, assumeNotNull(m.2), e.position
    FROM {event_network_count: Identifier} AS e
    ARRAY JOIN [('registered', e.registered), ('online', e.online), ('lobbies', e.lobbies)] AS m
    WHERE {range} AND m.2 IS NOT NULL`,
  touches: { key: `'*'`, bucketMs: INSTANT_MS }
}
