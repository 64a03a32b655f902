import { projectionCheckpoint, type ReaderPosition } from '@gamenet/schemas'
import { datasets } from './datasets.js'

/** The events of a dataset before `next` are in its rows; later ones may be. */
export type DatasetPosition = {
  readonly dataset: string
  readonly epoch: number
  readonly partition: number
  readonly next: number
}

/** Reads the positions of all datasets. Read them before the rows: a checkpoint is stored after its rows. */
export async function datasetPosition(
  positions: (names: readonly string[]) => Promise<readonly ReaderPosition[]>
): Promise<DatasetPosition[]> {
  const found = await positions(datasets.map(({ projection }) => projectionCheckpoint(projection)))
  return datasets.flatMap(({ name: dataset, projection }) =>
    found
      .filter(({ name }) => name === projectionCheckpoint(projection))
      .map(({ epoch, partition, next }) => ({ dataset, epoch, partition, next }))
  )
}
