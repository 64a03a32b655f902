import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openChdb, openPostgres } from '@gamenet/engines'
import { postgresPrograms, sharedPostgres, startClickHouseServer } from '@gamenet/engines/testing'
import { test } from 'tap'
import { FailureError, readConfig } from '../src/config.js'
import { claimDataDirectory } from '../src/data-directory/data-directory.js'
import { openService } from '../src/run/service.js'
import { gamenet } from './service/gamenet.js'

const FUTURE_TABLES = `INSERT INTO schema_migration (name, checksum) VALUES ('9000-weather', '0')`
const FUTURE_WRITES = `INSERT INTO schema_migration (version, name, md5, run_at) VALUES (9000, 'weather', '0', now())`

test('an older program refuses a data directory that a newer one used', async (t) => {
  const directory = t.testdir()
  const file = join(directory, 'format.json')
  const mine = { program: '0.9.0', engines: { chdb: '3.4.0', lmdb: '3.5.6' } }
  const takenAfter = async (format: object, versions = mine) => {
    await writeFile(file, JSON.stringify(format))
    const taken = await claimDataDirectory(directory, versions)
    await taken.release()
    return JSON.parse(await readFile(file, 'utf8'))
  }
  const refused = (format: object, sentence: RegExp) =>
    t.rejects(takenAfter(format), { constructor: FailureError, message: sentence })
  await refused(
    { format: 2, program: '9.1.0', engines: ['another form'] },
    /has format 2, written by Gamenet Stats 9\.1\.0; this program, 0\.9\.0, knows formats up to 1\. Start the newer program, or /
  )
  await refused(
    { format: 1, program: '0.10.0', engines: { chdb: '3.10.0' } },
    /was written by chdb 3\.10\.0 of Gamenet Stats 0\.10\.0; this program, 0\.9\.0, has chdb 3\.4\.0, which may not read it\. Start/
  )
  const current = { format: 1, ...mine }
  t.same(await takenAfter({ ...current, engines: { chdb: '3.4.9' } }), current, 'a mended engine writes the same')
  const newer = { program: '0.9.0', engines: { chdb: '4.0.0', lmdb: '3.5.6' } }
  t.same(await takenAfter(current, newer), { format: 1, ...newer }, 'it is what used it last that counts')
})

test('an older program refuses embedded tables that a newer one migrated, with one sentence', async (t) => {
  const directory = join(t.testdir(), 'data')
  const environment = { DATA_DIR: directory, UPSTREAM_URL: 'http://127.0.0.1:9' }
  const service = await openService(readConfig(environment), 'offline')
  await service.close()
  const tables = await openChdb({ path: join(directory, 'tables') })
  await tables.control.execute(FUTURE_TABLES)
  await tables.close()
  const { code, stderr } = await gamenet(environment, ['status'])
  t.equal(code, 1)
  t.match(stderr, /^The tables .* newer program: they have the migrations 9000-weather, .* knows up to 00\d\d-.* Start/)
  t.equal(stderr.trim().split('\n').length, 1)
})

const programs = postgresPrograms()
const absent = programs === undefined && process.env.CI !== 'true' ? 'PostgreSQL is not installed' : false
test('an older program refuses servers that a newer one migrated', { skip: absent }, async (t) => {
  const front = await startClickHouseServer({ path: join(t.testdir(), 'clickhouse') })
  t.teardown(() => front.kill())
  const server = await sharedPostgres(t)
  const config = readConfig({ CLICKHOUSE_URL: front.url, POSTGRES_URL: server.url, PORT: '0', OPERATOR_PORT: '0' })
  const open = () => openService(config, 'api')
  await (await open()).close()
  await front.ask(FUTURE_TABLES, { format: 'Null' })
  await t.rejects(open(), { constructor: FailureError, message: /^The tables .* migrations 9000-weather, .* Start/ })
  const writes = openPostgres({ url: server.url })
  await writes.query(FUTURE_WRITES)
  await writes.close()
  const newer = /^The PostgreSQL database .* has migration 9000, and this program knows up to \d+\. Start/
  await t.rejects(open(), { constructor: FailureError, message: newer })
})
