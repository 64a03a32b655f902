import { TitleDescribed, titleTopic } from '@gamenet/schemas'
import { type Fields, type Importable, importable } from './importable.js'
import { shown } from './row-judge.js'

const base = importable({
  topic: titleTopic,
  fields: {
    titleId: 'text',
    observedAt: 'instant',
    name: 'name',
    title: 'text',
    publisher: 'text',
    releaseDate: 'text',
    image: 'text',
    productCode: 'text',
    features: 'list'
  },
  measured: []
})

/**
 * Descriptions of titles: nothing is measured; an absent field is unknown, and so is an optional one that is not valid.
 */
export const titleImport: Importable = {
  ...base,
  open: () => {
    const omitted: string[] = []
    return {
      outcome: (fields, judge) => {
        const bad = Object.keys(fields).filter((field) => !base.required.includes(field) && !isValid(field, fields))
        omitted.push(...bad.map((field) => `${field} ${shown(fields[field])}`))
        return judge(Object.fromEntries(Object.entries(fields).filter(([field]) => !bad.includes(field))))
      },
      notes: () => {
        const [first] = omitted
        const note = `${omitted.length} optional values are not valid and were left out, such as ${first}`
        omitted.length = 0
        return first === undefined ? [] : [note]
      }
    }
  }
}

function isValid(field: string, fields: Fields): boolean {
  const schema = TitleDescribed.shape[field as keyof TitleDescribed]
  return schema.safeParse(fields[field]).success
}
