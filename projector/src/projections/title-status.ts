import { titleStatusTopic } from '@gamenet/schemas'
import { INSTANT_MS } from '../store/projection.js'
import { rowPerEvent } from './sql-projection.js'

/** Whether each title is on the network: the newest instant wins, of equal instants the later event. */
export const titleStatus = rowPerEvent({
  name: 'title-status',
  from: titleStatusTopic,
  columns: ['title_id', 'on_network', 'ts', 'version'],
  touches: { key: 'e.title_id', bucketMs: INSTANT_MS }
})
