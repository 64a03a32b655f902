import { test } from 'tap'
import { mistakes } from '../simulate/bugs.js'
import { runSeed } from '../simulate/run-seed.js'
import { openTables, playAgain } from './service/simulated-statements.js'

const SEEDS = 200
const PROVE_SEEDS = 1000
/** Whose statements chDB answers too, with faults: an import is taken back; what was retried comes late, and into what is reloaded. */
const PLAYED_SEEDS = [5, 95]

/** For each mistake the seed that finds it, as `npm run simulate -- --prove` tells; after a change it may be a later one. */
const FOUND_BY: Readonly<Record<string, number>> = {
  'commit-before-store': 5,
  'offset-resolved-early': 3,
  'dedup-window': 1,
  'swallowed-failure': 27,
  'sum-over-increments': 1,
  'last-write-wins': 3,
  'checkpoint-before-rows': 1,
  'change-before-rows': 64,
  'untold-change': 43,
  'version-from-clock': 12,
  'narrow-touch': 5,
  'feed-past-checkpoint': 22,
  'relay-deletes-early': 1,
  'stale-board': 32,
  'lost-rank': 56,
  'swap-before-catch-up': 5,
  'rebuild-ahead-of-live': 201,
  'old-tables-not-caught-up': 5,
  'passes-not-shared': 5,
  'late-untold': 5,
  'retry-decided-first': 25,
  'retracted-reloaded': 5,
  'exchange-not-ended': 76,
  'loading-beside-exchange': 13
}

test(`${SEEDS} worlds of crashes, lost answers and jumping clocks end with nothing lost and nothing wrong`, async (t) => {
  let deaths = 0
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const outcome = await runSeed(seed)
    deaths += outcome.deaths
    if (outcome.faults.length > 0) t.fail(`npm run simulate -- --seeds 1 --seed ${seed}: ${outcome.faults.join('\n')}`)
  }
  t.ok(deaths > 0, `${deaths} deaths`)
})

test('a world happens again in the same way', async (t) => {
  const [first, second] = [await runSeed(4, { isTraced: true }), await runSeed(4, { isTraced: true })]
  t.equal(first.fingerprint, second.fingerprint)
  t.same(first.trace, second.trace)
  t.ok(first.trace.length > 100)
})

test('each classic mistake is found', async (t) => {
  t.same(Object.keys(FOUND_BY).sort(), Object.keys(mistakes).sort())
  for (const [bug, first] of Object.entries(FOUND_BY)) {
    const found = await firstThatFinds(bug, first)
    t.ok(found !== undefined, `${bug}: ${found ?? `not found by seeds ${first} to ${first + PROVE_SEEDS - 1}`}`)
  }
})

/** The first seed from one on that fails with the mistake, and does not without it, and what is wrong then. */
async function firstThatFinds(bug: string, first: number): Promise<string | undefined> {
  for (let seed = first; seed < first + PROVE_SEEDS; seed += 1) {
    const { faults } = await runSeed(seed, { bug })
    if (faults.length > 0 && (await runSeed(seed)).faults.length === 0) return `seed ${seed}: ${faults[0]}`
  }
  return undefined
}

test('the plain folds and answers of the simulator are those of the SQL on chDB', async (t) => {
  const tables = await openTables(t)
  for (const seed of PLAYED_SEEDS) {
    const { played, faults } = await runSeed(seed, { isPlayed: true })
    t.same(faults, [])
    const compared = await playAgain(tables, played)
    t.ok(compared > 50, `${compared} answers`)
  }
})
