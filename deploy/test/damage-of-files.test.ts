import { revisionFiles, unusableNames } from '@gamenet/api'
import { withChecksum } from '@gamenet/schemas'
import { test } from 'tap'
import { damageOfDatasets, withCheckThread } from '../src/operate/verify/find-damage.js'

test('files and descriptions of datasets that cannot be read are findings', async (t) => {
  const revision = { revision: 1, rows: 1, bytes: 1, first: null, last: null, sha256: 'a'.repeat(64), rowsHash: '' }
  const facts = { ...revision, position: '', madeAt: '2025-01-01T00:00:00.000Z' }
  const described = withChecksum(
    JSON.stringify({ version: 1, checkedMs: 1, revisions: [{ ...facts, file: '2025-01.a.parquet' }] })
  )
  const directory = t.testdir({
    'network-count': {
      '2025-01.json': described,
      '2025-01.a.parquet': {},
      '2025-02.json': described.slice(1)
    },
    'title-count': { '2025-01.json': {} }
  })
  const found = async () => {
    const { files, unreadable } = await revisionFiles(directory)
    const host = { read: () => undefined, keys: async () => new Map() }
    const damaged = await withCheckThread(host, (call) => call('datasets', directory, files))
    return damageOfDatasets([...damaged, ...unreadable])
  }
  const unreadable = (name: string) => ({ what: `datasets/${name} cannot be read (EISDIR)` })
  const ways = [unreadable('network-count/2025-01.a.parquet'), unreadable('title-count/2025-01.json')]
  t.same(await unusableNames(directory), ['network-count/2025-01.a.parquet', 'title-count/2025-01.json'])
  t.match(await found(), ways)
})
