import { type FSWatcher, watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** Resolves when so many more parts of tables have appeared in a directory of ClickHouse's. */
export async function insertsInto(tables: string, count: number, signal: AbortSignal): Promise<void> {
  const store = join(tables, 'store')
  const watchers: FSWatcher[] = []
  let left = count
  try {
    await new Promise<void>((resolve, reject) => {
      signal.addEventListener('abort', () => resolve())
      const begin = async (): Promise<void> => {
        for (const prefix of await readdir(store)) {
          for (const table of await readdir(join(store, prefix))) {
            const watcher = watch(join(store, prefix, table), (_, name) => {
              if (name?.startsWith('tmp_insert_') === true) left -= 1
              if (left <= 0) resolve()
            })
            watcher.on('error', () => undefined)
            watchers.push(watcher)
          }
        }
      }
      begin().catch(reject)
    })
  } finally {
    for (const watcher of watchers) watcher.close()
  }
}
