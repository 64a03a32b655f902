import { nameKey, titleTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const titleEvents = eventTable(titleTopic, {
  title_id: ['LowCardinality(String)', (event) => event.titleId],
  name: ['String', (event) => event.name],
  name_key: ['String', (event) => nameKey(event.name)],
  title: ['Nullable(String)', (event) => event.title ?? null],
  publisher: ['Nullable(String)', (event) => event.publisher ?? null],
  release_date: ['Nullable(String)', (event) => event.releaseDate ?? null],
  image: ['Nullable(String)', (event) => event.image ?? null],
  product_code: ['Nullable(String)', (event) => event.productCode ?? null],
  // An empty list means that the title has no features; an absent one means nothing.
  features: ['Nullable(String)', (event) => event.features?.join(',') ?? null]
})
