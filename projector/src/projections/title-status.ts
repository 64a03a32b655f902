import { titleStatusTopic } from '@gamenet/schemas'
import { INSTANT_MS, type Projection } from '../store/projection.js'

/** Whether each title is on the network: the newest instant wins, of equal instants the later event. */
export const titleStatus: Projection = {
  name: 'title-status',
  from: titleStatusTopic,
  into: 'title_status',
  columns: ['title_id', 'on_network', 'ts', 'version'],
  select: `
    SELECT e.title_id, e.on_network, e.observed_at, e.version
    FROM {event_title_status: Identifier} AS e
    WHERE {range}`,
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
}
