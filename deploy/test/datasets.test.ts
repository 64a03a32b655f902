import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { z } from 'zod'
import { startQuietService } from './boards-service.js'
import { datasetsOf, provesSameBytes } from './service/dataset-proofs.js'
import { gamenetJson } from './service/gamenet.js'

const PATH = '/api/data/title-count/2025-03.parquet'
const Imported = z.tuple([z.object({ importId: z.string() })])

test('files of a closed month, through a late import, its undo, a rebuild and a restart', async (t) => {
  const { environment, running, directory } = await startQuietService(t)
  const importRows = async (file: string, rows: readonly string[]) => {
    const path = join(directory, file)
    writeFileSync(path, ['titleId,observedAt,online', ...rows].join('\n'))
    return Imported.parse(await gamenetJson(environment, ['import', 'title-count', path]))[0].importId
  }
  const get = async (url: string) => Buffer.from(await (await fetch(running.apiUrl + url)).arrayBuffer())
  await importRows(
    'first.csv',
    Array.from({ length: 500 }, (_, n) => `4d53${1000 + (n % 7)},2025-03-01T00:${10 + (n % 50)}:00Z,${n}`)
  )
  const first = await get(PATH)
  const [revision] = await revisions(running.apiUrl)
  const url = revision?.url ?? ''

  const importId = await importRows('late.csv', ['4d530064,2025-03-31T23:59:00Z,99'])
  t.ok((await get(url)).equals(first), 'a client on the old revision')
  t.notOk((await get(PATH)).equals(first))
  t.ok((await get(url)).equals(first), 'while and after the new one is made')
  t.same(await numbers(running.apiUrl), [2, 1])

  await gamenetJson(environment, ['import', 'undo', importId])
  t.ok((await get(PATH)).equals(first))
  t.same(await numbers(running.apiUrl), [3, 2], 'an undo makes a revision')

  const folder = join(directory, 'data', 'datasets', 'title-count')
  for (const name of readdirSync(folder)) if (name.endsWith('.parquet')) rmSync(join(folder, name))
  t.ok((await get(url)).equals(first), 'deleted by hand')
  t.same(await numbers(running.apiUrl), [3, 2])
  const unusable = join(directory, 'data', 'datasets', 'title', 'newest.json')
  mkdirSync(unusable, { recursive: true })
  t.equal((await fetch(`${running.apiUrl}/api/data/title/newest.parquet`)).status, 503)
  t.match(await gamenetJson(environment, ['status']), {
    degraded: { 0: 'datasets/title/newest.json cannot be read (gamenet verify)', length: 1 }
  })
  rmSync(unusable, { recursive: true })
  await provesSameBytes(t, environment, running, ['title-count'])
})

async function revisions(apiUrl: string) {
  const dataset = (await datasetsOf(apiUrl)).find(({ name }) => name === 'title-count')
  const file = dataset?.files.find(({ period }) => period === '2025-03')
  return file?.newest == null ? [] : [file.newest, ...file.earlier]
}

const numbers = async (apiUrl: string) => (await revisions(apiUrl)).map(({ revision }) => revision)
