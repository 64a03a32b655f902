import { once } from 'node:events'
import { type FSWatcher, watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Resolves when `count` parts have been added to the tables in a directory of ClickHouse, or when the signal aborts.
 */
export async function insertsInto(tables: string, count: number, signal: AbortSignal): Promise<void> {
  const store = join(tables, 'store')
  const watchers: FSWatcher[] = []
  const enough = new AbortController()
  let left = count
  const seen = (name: string | null): void => {
    if (name?.startsWith('tmp_insert_') === true) left -= 1
    if (left <= 0) enough.abort()
  }
  try {
    for (const prefix of await readdir(store)) {
      for (const table of await readdir(join(store, prefix))) {
        const watcher = watch(join(store, prefix, table), (_, name) => seen(name))
        watcher.on('error', () => undefined)
        watchers.push(watcher)
      }
    }
    const over = AbortSignal.any([signal, enough.signal])
    if (!over.aborted) await once(over, 'abort')
  } finally {
    for (const watcher of watchers) watcher.close()
  }
}
