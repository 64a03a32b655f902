import { access, constants, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '@gamenet/schemas'
import { DatasetFolder, isDamaged } from './dataset-folder.js'
import { datasets } from './datasets.js'

/** A file with the bytes of a revision. */
export type RevisionFile = {
  /** Relative to the directory of the datasets. */
  readonly name: string
  readonly sha256: string
  /** Whether it is made again if it is missing. */
  readonly isNewest: boolean
}

/** A description that was damaged, or cannot be read, as can the folder of a dataset. */
export type UnreadableDescription = {
  /** Relative to the directory of the datasets. */
  readonly name: string
  /** The copy of it; also all files of its period, unless it was made again. */
  readonly copies: readonly string[]
  /** What the system said; undefined for content that was changed. */
  readonly code?: string
}

/**
 * Returns what is damaged, lost or unusable in a directory of datasets as far as names, kinds and permissions show it.
 */
export async function damagedNames(directory: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const { name: dataset } of datasets) {
    const names = await new DatasetFolder(join(directory, dataset)).names().catch(() => undefined)
    if (names === undefined) found.push(dataset)
    for (const name of names ?? [])
      if (isDamaged(name) || (await isUnusable(join(directory, dataset, name)))) found.push(join(dataset, name))
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
      unreadable.push({ name, copies: [], code: errorCode(error) })
      return undefined
    }
    const periods = (await folder.mentioned().catch(orUnreadable(dataset))) ?? []
    const damaged = new Set<string>()
    for (const period of periods) {
      const name = join(dataset, `${period}.json`)
      const file = await folder.file(period).then((read) => read ?? 'damaged', orUnreadable(name))
      if (file === 'damaged') damaged.add(name)
      for (const [n, revision] of (typeof file === 'object' ? file.revisions : []).entries())
        files.push({ name: join(dataset, revision.file), sha256: revision.sha256, isNewest: n === 0 })
    }
    const names = await folder.names().catch(() => [])
    for (const copy of names.filter(isDamaged)) {
      const [period = ''] = copy.split('.')
      const name = join(dataset, `${period}.json`)
      const copies = damaged.has(name) ? names.filter((each) => each.startsWith(`${period}.`)) : [copy]
      unreadable.push({ name, copies: copies.map((each) => join(dataset, each)) })
    }
  }
  return { files, unreadable }
}
