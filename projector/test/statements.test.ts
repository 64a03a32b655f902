import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { test } from 'tap'
import { statementsOf } from '../src/generations/generations.js'
import { projections } from '../src/index.js'
import type { Statements } from '../src/store/generation.js'

const FILE = new URL('../../statements.json', import.meta.url)
const FOLDS = new URL('../../src/folds/', import.meta.url)

/** The hash of the program text of all folds, without comments and layout: what determines rows besides statements. */
async function hashOfFolds(): Promise<string> {
  const hash = createHash('sha256')
  for (const name of (await readdir(FOLDS)).sort()) {
    const text = await readFile(new URL(name, FOLDS), 'utf8')
    const code = text.replaceAll(/\/\*.*?\*\//gs, '').replaceAll(/^\s*\/\/.*$/gm, '')
    hash.update(code.replaceAll(/\s+/g, ' '))
  }
  return hash.digest('hex').slice(0, 16)
}

test('a projection whose statements have changed has the next version', async (t) => {
  const written = JSON.parse(await readFile(FILE, 'utf8').catch(() => '{}')) as Record<string, Statements>
  const folds = await hashOfFolds()
  const now = Object.fromEntries(
    projections.map((each) => [each.name, { ...statementsOf(each), ...(each.form === 'fold' ? { folds } : {}) }])
  )
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
    'projector/statements.json is not what the projections have (if `folds` differs, rows may: then give both projections of folds the next version); REFRESH_STATEMENTS=1 npm test -- statements.test writes it again'
  )
})
