import { setPriority } from 'node:os'
import { type Key, open } from 'lmdb'

/*
 * Reads all keys of a log, with `values` also the batches, and prints the damage that it meets. LMDB trusts its pages:
 * a damaged one may end the process by a signal, which is why this one exists.
 */

const LOWEST_PRIORITY = 19

const [, , path = '', reads] = process.argv
setPriority(LOWEST_PRIORITY)
try {
  const root = open({ path, noSubdir: false, maxDbs: 4, readOnly: true, encoding: 'binary' })
  const batches = root.openDB<Buffer, Key>({ name: 'batches', encoding: 'binary' })
  const [last] = [...batches.getKeys({ reverse: true, limit: 1 })]
  let hasLast = last === undefined
  for (const key of reads === 'values' ? batches.getRange().map(({ key }) => key) : batches.getKeys()) {
    const isKey = Array.isArray(key) && key.length === 4 && typeof key[0] === 'string'
    if (!isKey) throw new Error('a key is damaged')
    if (!batches.doesExist(key)) throw new Error(`a page that leads to ${key.join('/')} is damaged`)
    hasLast ||= String(key) === String(last)
  }
  if (!hasLast) throw new Error('its keys end too early')
  await root.close()
} catch (error) {
  process.stdout.write(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
