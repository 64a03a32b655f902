import { datasets } from '@gamenet/api'

export type DatasetView = { readonly name: string; readonly select: string }

/** Returns the datasets as statements name them, `title-count` as `title_count`, each with its SELECT. */
export function datasetViews(table: (name: string) => string): DatasetView[] {
  return datasets.map(({ name, select }) => ({ name: name.replaceAll('-', '_'), select: select(table) }))
}
