import { access, constants, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '@gamenet/schemas'
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

/** A description or the folder of a dataset that cannot be read. */
export type UnreadableDescription = {
  /** Relative to the directory of the datasets. */
  readonly name: string
  /** What the system said. */
  readonly code: string
}

/** Returns what cannot be read in a directory of datasets, as far as kinds and permissions show it. */
export async function unusableNames(directory: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const { name: dataset } of datasets) {
    const names = await new DatasetFolder(join(directory, dataset)).names().catch(() => undefined)
    if (names === undefined) found.push(dataset)
    for (const name of names ?? [])
      if (await isUnusable(join(directory, dataset, name))) found.push(join(dataset, name))
  }
  return found
}

async function isUnusable(path: string): Promise<boolean> {
  try {
    await access(path, constants.R_OK)
    return !(await stat(path)).isFile()
  } catch (error) {
    // Old revisions are removed meanwhile.
    return errorCode(error) !== 'ENOENT'
  }
}

/** Returns the existing files that the descriptions in a directory of datasets list, and what cannot be read. */
export async function revisionFiles(
  directory: string
): Promise<{ readonly files: readonly RevisionFile[]; readonly unreadable: readonly UnreadableDescription[] }> {
  const files: RevisionFile[] = []
  const unreadable: UnreadableDescription[] = []
  for (const { name: dataset } of datasets) {
    const folder = new DatasetFolder(join(directory, dataset))
    const orUnreadable = (name: string) => (error: unknown) => {
      unreadable.push({ name, code: errorCode(error) })
      return undefined
    }
    for (const period of (await folder.periods().catch(orUnreadable(dataset))) ?? []) {
      const file = await folder.file(period).catch(orUnreadable(join(dataset, `${period}.json`)))
      for (const [n, revision] of (file?.revisions ?? []).entries())
        files.push({ name: join(dataset, revision.file), sha256: revision.sha256, isNewest: n === 0 })
    }
  }
  return { files, unreadable }
}
