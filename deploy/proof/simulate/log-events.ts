import { decodeEvent, type ImportRetracted, importRetractionTopic } from '@gamenet/schemas'
import type { Place } from './place.js'

/** Returns the undone imports in the log, each with its topic. */
export function undoneImports({ partitions }: Place['log']): Set<string> {
  const records = partitions.flatMap(({ topic, records }) => (topic === importRetractionTopic.name ? records : []))
  return new Set(
    records.flatMap((record) => {
      const decoded = decodeEvent<ImportRetracted>(importRetractionTopic, record)
      return decoded.ok ? [`${decoded.event.topic}/${decoded.event.importId}`] : []
    })
  )
}
