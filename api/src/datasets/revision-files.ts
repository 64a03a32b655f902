import { join } from 'node:path'
import { DatasetFolder } from './dataset-folder.js'
import { datasets } from './datasets.js'

/** A file with the bytes of a revision. */
export type RevisionFile = {
  /** Relative to the directory of the datasets. */
  readonly name: string
  readonly sha256: string
  /** Whether it is made again if it is missing. */
  readonly isNewest: boolean
}

/** Returns the existing files that the descriptions in a directory of datasets list. */
export async function revisionFiles(directory: string): Promise<readonly RevisionFile[]> {
  const kept: RevisionFile[] = []
  for (const dataset of datasets) {
    const { names, files } = await new DatasetFolder(join(directory, dataset.name)).content()
    for (const { revisions } of files.values()) {
      for (const [n, { file, sha256 }] of revisions.entries())
        if (names.has(file)) kept.push({ name: join(dataset.name, file), sha256, isNewest: n === 0 })
    }
  }
  return kept
}
