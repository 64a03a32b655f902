import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { flushPath } from '@gamenet/engines/files'
import type { Store } from '@gamenet/projector'
import { readDetachedParts, readKnownFolders } from '@gamenet/projector/erasure'
import { errorCode } from '@gamenet/schemas'

/**
 * Removes the rows of all detached parts, which no statement reads; throws if this process does not own their files.
 * Their empty folders stay: they record that a table has lost rows.
 */
export async function emptyDetachedParts(store: Store, { ownsFiles }: { readonly ownsFiles: boolean }): Promise<void> {
  const detached = await store.do(readDetachedParts)
  if (!ownsFiles && detached.length > 0) {
    const parts = detached.map(({ table, part }) => `${table}/${part}`).join(', ')
    throw new Error(`detached parts may contain rows of the person: drop them, and start again: ${parts}`)
  }
  for (const { path } of detached) {
    for (const file of await readdir(path).catch(noneIfMissing))
      await rm(join(path, file), { recursive: true, force: true })
    await flushPath(path).catch(noneIfMissing)
  }
}

/**
 * Removes the files of tables that the engine does not know: their definitions were deleted by hand. Folders that
 * changed since this process started may belong to a table that is being created.
 */
export async function removeUnknownTables(store: Store): Promise<void> {
  const { root, folders } = await store.do(readKnownFolders)
  for (const group of await readdir(join(root, 'store'), { withFileTypes: true })) {
    if (!group.isDirectory()) continue
    for (const name of await readdir(join(root, 'store', group.name))) {
      const folder = join(root, 'store', group.name, name)
      if (folders.has(name) || (await stat(folder)).mtimeMs >= performance.timeOrigin) continue
      await rm(folder, { recursive: true })
    }
  }
}

/** A repair may drop the part meanwhile. */
function noneIfMissing(error: unknown): never[] {
  if (errorCode(error) === 'ENOENT') return []
  throw error
}
