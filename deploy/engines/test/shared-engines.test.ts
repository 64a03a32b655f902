import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { openPostgres } from '../src/index.js'
import { postgresPrograms } from '../testing/index.js'

const missing = 'PostgreSQL is not installed (Debian: apt-get install postgresql)'
const skip = postgresPrograms() === undefined && process.env.CI !== 'true' ? missing : false

test('a shared engine is started once for all tests, and ends with the run that started it', {
  skip
}, async (t) => {
  const main = fileURLToPath(new URL('../testing/shared/main.js', import.meta.url))
  const run = spawn(process.execPath, [main], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => run.stdin.destroy())
  const [line] = await once(run.stdout, 'data')
  const address = String(line).trim()
  t.match(await (await fetch(`${address}/mysql`)).text(), /no engine "mysql"; there are kafka, clickhouse, postgres/)
  const ask = async () => (await (await fetch(`${address}/postgres`)).json()) as { url: string }
  const [one, other] = await Promise.all([ask(), ask()])
  t.same(one, other)
  const postgres = openPostgres({ url: one.url })
  t.teardown(() => postgres.close())
  await postgres.check()
  run.kill('SIGINT')
  await postgres.check()
  const ended = once(run, 'exit')
  run.stdin.destroy()
  t.same(await ended, [0, null])
  await t.rejects(postgres.check(), { code: 'engine_away' })
})
