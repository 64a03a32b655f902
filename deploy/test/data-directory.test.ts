import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { claimDataDirectory } from '../src/data-directory.js'

const VERSIONS = { program: '0.9.0', engines: { chdb: '3.4.0' } }

test('a first start that was cut off while it wrote its format leaves a directory that can be taken', async (t) => {
  const path = t.testdir({ 'format.json': '', 'service.json': '{"pid":' })
  const directory = await claimDataDirectory(path, VERSIONS)
  t.match(JSON.parse(await readFile(join(path, 'format.json'), 'utf8')), { format: Number, program: '0.9.0' })
  await directory.release()
  await writeFile(join(path, 'format.json'), '{"form')
  await t.rejects(claimDataDirectory(path, VERSIONS), /cannot be read/, 'what is damaged is not taken')
})
