import { nameKey, titleTopic } from '@gamenet/schemas'
import { eventTable } from './event-table.js'

export const titleEvents = eventTable(titleTopic, {
  title_id: (event) => event.titleId,
  name: (event) => event.name,
  name_key: (event) => nameKey(event.name),
  title: (event) => event.title ?? null,
  publisher: (event) => event.publisher ?? null,
  release_date: (event) => event.releaseDate ?? null,
  image: (event) => event.image ?? null,
  product_code: (event) => event.productCode ?? null,
  // An empty list means that the title has no features; an absent one means nothing.
  features: (event) => event.features?.join(',') ?? null
})
