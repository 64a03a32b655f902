import { readFile } from 'node:fs/promises'
import { openClickHouseServer } from '@gamenet/engines'
import { replicasMissing, replicatedDatabase } from '@gamenet/engines/testing'
import { generationName } from '@gamenet/schemas'
import { test } from 'tap'
import { bareName, migrateSchema, readDefinitions } from '../src/migrate/migrate-schema.js'
import { readCheckpoints, storeCheckpoints } from '../src/store/checkpoint.js'
import { readShape } from '../src/store/comparison.js'
import { storeOver } from '../src/store/operation.js'
import { createTable, readDisks, readTablesOfRebuilds } from '../src/store/table.js'

const skip = replicasMissing()
const DEFINITIONS = new URL('../../definitions.json', import.meta.url)

test('a migration on one replica makes the same tables on all, whose rows are on all', { skip }, async (t) => {
  const urls = await replicatedDatabase(t)
  const servers = urls.map((url) => openClickHouseServer({ url }))
  t.teardown(() => Promise.all(servers.map((server) => server.close())))
  const [first, ...others] = servers.map(({ control }) => control)
  if (first === undefined) throw new Error('there are three replicas')
  t.ok((await migrateSchema(first)).length > 0)
  const known = JSON.parse(await readFile(DEFINITIONS, 'utf8'))
  const store = storeOver(first)
  const own = await store.do(readShape, generationName('title_count', 0))
  t.notOk(own.values.includes('position'), 'a comparison leaves the version of rows out')
  await store.do(createTable, 'title_count__7', 'title_count__0')
  await store.do(storeCheckpoints, [{ name: 'load:title-count', epoch: 1, partition: 0, next: 7 }])
  t.equal((await store.do(readDisks)).length, servers.length, 'lists of the engine are those of all replicas')
  for (const other of others) {
    t.same(await migrateSchema(other), [], 'nothing is left for another replica')
    const found = await readDefinitions(other)
    const differing = [...found].filter(([name, hash]) => known[bareName(name)] !== hash)
    t.same(differing, [], 'definitions are those of plain tables')
    t.same([...found.keys()], [...(await readDefinitions(first)).keys()])
    const engines = await other.rows(
      `SELECT t.name AS name FROM system.tables AS t WHERE t.database = currentDatabase()
         AND t.engine LIKE '%MergeTree' AND t.engine NOT LIKE 'Replicated%'`
    )
    t.same(engines, [], 'every table replicates its rows')
    t.same(await storeOver(other).do(readShape, generationName('title_count', 0)), own)
    t.same((await storeOver(other).do(readTablesOfRebuilds)).filter(({ name }) => name === 'title_count__7').length, 1)
    t.same(await storeOver(other).do(readCheckpoints), [{ name: 'load:title-count', epoch: 1, partition: 0, next: 7 }])
  }
})
