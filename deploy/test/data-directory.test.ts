import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { takeDataDirectory } from '../src/data-directory.js'

test('a first start that was cut off while it wrote its format leaves a directory that can be taken', async (t) => {
  const path = t.testdir({ 'format.json': '', 'service.json': '{"pid":' })
  const directory = await takeDataDirectory(path, 'chdb')
  t.match(JSON.parse(await readFile(join(path, 'format.json'), 'utf8')), { format: Number, engine: 'chdb' })
  await directory.release()
  await writeFile(join(path, 'format.json'), '{"form')
  await t.rejects(takeDataDirectory(path, 'chdb'), /cannot be read/, 'what is damaged is not taken')
})
