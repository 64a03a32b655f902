import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { ANALYST_LIMITS, openAnalyst, StatementFailed } from '../src/sql/analyst.js'
import { StatementRefused } from '../src/sql/check-select.js'
import { HOSTILE_STATEMENTS, HUGE_STATEMENTS } from '../testing/hostile-statements.js'
import type { Fuzz } from './fuzzer.js'

/* Mutations by the engine's own fuzzer reach the process of analysts' statements. The short form is check-select.test.ts. */

const SECONDS = Number(process.env.CAMPAIGN_SECONDS ?? 600)
const MUTATIONS = 20
/** Time limit of one statement's mutations, which take 10 ms, and of the start of the process. */
const FUZZ_MS_MAX = 5000
/** A text in a file of the data directory and in the environment. */
const CANARY = 'canary-5b1f'
/** A number that only the settings of the process contain. */
const MEMORY_BYTES = ANALYST_LIMITS.memoryBytes + 4336

/** Mutations of ordinary statements are often allowed, so that they run. */
const ORDINARY = [
  'SELECT title_id, max(online) AS peak FROM title_count GROUP BY title_id ORDER BY peak DESC LIMIT 3',
  `WITH c AS (SELECT * FROM title_count) SELECT a.online, file('CANARY') FROM c AS a JOIN c AS b USING (title_id)`,
  `SELECT arrayMap(x -> x + 1, [1, 2]), count() OVER (ORDER BY online) FROM title_count WHERE title_id IN ('a', 'b')`,
  'SELECT number, toStartOfHour(now()) FROM numbers(10) UNION ALL SELECT online, now() FROM title_count'
]

test('mutations of statements read and write nothing outside the views', async (t) => {
  const directory = t.testdir()
  const data = join(directory, 'data')
  mkdirSync(data)
  const canary = join(data, 'canary')
  writeFileSync(canary, CANARY)
  process.env.CANARY = CANARY
  const secrets = [CANARY, String(MEMORY_BYTES), ...readFileSync('/etc/passwd', 'utf8').split('\n', 1)]
  const analyst = await openAnalyst({
    directory: join(data, 'snapshot'),
    tables: [],
    views: [
      { name: 'title_count', select: `SELECT '4d530064' AS title_id, toUInt32(number) AS online FROM numbers(5)` }
    ],
    limits: { ...ANALYST_LIMITS, memoryBytes: MEMORY_BYTES, seconds: 1 }
  })
  t.teardown(() => analyst.close())
  const before = files(data)
  const hereBefore = readdirSync('.')
  const count = { allowed: 0, refused: 0, failed: 0, killed: 0 }
  const run = async (statement: string) => {
    try {
      const { bytes } = await analyst.run({ statement, format: 'TabSeparated', parameters: {} })
      count.allowed += 1
      return Buffer.from(bytes).toString('latin1')
    } catch (error) {
      if (error instanceof StatementRefused) count.refused += 1
      else if (!(error instanceof StatementFailed)) throw error
      else if (/was killed: it exceeded twice its time/.test(error.message)) count.killed += 1
      else if (/has ended/.test(error.message)) t.fail(statement, { message: error.message })
      else count.failed += 1
      return error.message
    }
  }
  const tries = async (statement: string) => {
    const answer = await run(statement)
    const found = secrets.filter((secret) => answer.includes(secret) && !statement.includes(secret))
    if (found.length > 0) t.fail(statement, { found, answer })
  }
  for (const statement of HUGE_STATEMENTS) await tries(statement)
  const mutationsOf = openFuzzer(t, join(directory, 'fuzzer'))
  const statements = [...ORDINARY, ...HOSTILE_STATEMENTS].map((statement) =>
    statement.replaceAll(/\/etc\/passwd|CANARY/g, canary).replaceAll('/tmp/a', join(data, 'written'))
  )
  const end = Date.now() + SECONDS * 1000
  let seed = 1
  for (; Date.now() < end; seed += 1) {
    for (const statement of statements) {
      if (Date.now() >= end) break
      for (const mutation of await mutationsOf({ statement, seed, count: MUTATIONS })) await tries(mutation)
    }
  }
  t.same(files(data), before, 'nothing is written')
  t.same(readdirSync('.'), hereBefore, 'nothing is written to the working directory')
  t.ok(count.allowed > 0 && count.refused > 0, JSON.stringify(count))
  t.comment(`${seed - 1} rounds over ${statements.length} statements: ${JSON.stringify(count)}`)
})

/**
 * Returns the first mutations of a statement by a seed; none if they take too long. The engine's fuzzer has no limits: one mutation
 * of `SELECT EXISTS (…)` had taken 2.2 GB after 15 s and still grew. So it runs in a separate process.
 */
function openFuzzer(t: Test, directory: string): (fuzz: Fuzz) => Promise<readonly string[]> {
  const start = () => fork(FUZZER, [directory], { execArgv: [] })
  let child = start()
  t.teardown(() => child.kill('SIGKILL'))
  return async (fuzz) => {
    child.send(fuzz)
    try {
      const [mutations] = await once(child, 'message', { signal: AbortSignal.timeout(FUZZ_MS_MAX) })
      return mutations
    } catch {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      child = start()
      return []
    }
  }
}

const FUZZER = fileURLToPath(new URL('./fuzzer.js', import.meta.url))

/** Returns the sizes of all files below a directory, by path. */
function files(directory: string): Record<string, number> {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()
  return Object.fromEntries(names.map((name) => [name, statSync(join(directory, name)).size]))
}
