import { titleTopic } from '@gamenet/schemas'
import { importable } from './importable.js'

/** Descriptions of titles: nothing is measured; an absent field is unknown. */
export const titleImport = importable({
  topic: titleTopic,
  fields: {
    titleId: 'text',
    observedAt: 'instant',
    name: 'text',
    title: 'text',
    publisher: 'text',
    releaseDate: 'text',
    image: 'text',
    productCode: 'text',
    features: 'list'
  },
  measured: []
})
