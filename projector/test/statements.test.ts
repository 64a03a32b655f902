import { readFile, writeFile } from 'node:fs/promises'
import { test } from 'tap'
import { statementsOf } from '../src/generations/generations.js'
import { projections } from '../src/index.js'
import type { Statements } from '../src/store/generation.js'

const FILE = new URL('../../statements.json', import.meta.url)

test('a projection whose statements have changed has the next version', async (t) => {
  const written = JSON.parse(await readFile(FILE, 'utf8').catch(() => '{}')) as Record<string, Statements>
  const now = Object.fromEntries(projections.map((each) => [each.name, statementsOf(each)]))
  for (const [name, { version, hash }] of Object.entries(now)) {
    const before = written[name]
    if (before === undefined) continue
    const isNext = version === before.version + 1
    t.ok(
      isNext || (version === before.version && hash === before.hash),
      `the statements of ${name} have changed: give it version ${before.version + 1}`
    )
  }
  // Only with versions that fit: a hash of a released version never changes.
  if (process.env.REFRESH_STATEMENTS === '1' && t.passing()) await writeFile(FILE, `${JSON.stringify(now, null, 2)}\n`)
  t.same(
    JSON.parse(await readFile(FILE, 'utf8').catch(() => '{}')),
    now,
    'projector/statements.json is not what the projections have; REFRESH_STATEMENTS=1 npm test -- statements.test writes it again'
  )
})
