import { test } from 'tap'
import { mistakes } from '../simulate/bugs.js'
import { runSeed } from '../simulate/run-seed.js'
import { openTables, playAgain } from './service/simulated-statements.js'

const SEEDS = 200
/** Whose statements chDB answers too: alone and several processes, with faults. */
const PLAYED_SEEDS = [3, 8]

/** For each mistake seeds that find it, as `npm run simulate -- --prove` tells. */
const FOUND_BY: Readonly<Record<string, number>> = {
  'commit-before-store': 1,
  'offset-resolved-early': 14,
  'dedup-window': 1,
  'swallowed-failure': 104,
  'sum-over-increments': 1,
  'last-write-wins': 4,
  'checkpoint-before-rows': 3,
  'change-before-rows': 45,
  'untold-change': 101,
  'version-from-clock': 48,
  'narrow-touch': 1,
  'feed-past-checkpoint': 14,
  'relay-deletes-early': 1,
  'stale-board': 33,
  'lost-rank': 4
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
  t.same(Object.keys(FOUND_BY), Object.keys(mistakes))
  for (const [bug, seed] of Object.entries(FOUND_BY)) {
    const outcome = await runSeed(seed, { bug })
    t.same((await runSeed(seed)).faults, [])
    t.ok(outcome.faults.length > 0, `${bug}: seed ${seed}: ${outcome.faults[0] ?? 'nothing found'}`)
  }
})

test('the plain folds and answers of the simulator are those of the SQL on chDB', async (t) => {
  const tables = await openTables(t)
  for (const seed of PLAYED_SEEDS) {
    const { played, faults } = await runSeed(seed, { isPlayed: true })
    t.same(faults, [])
    const compared = await playAgain(tables, played)
    t.ok(compared > 50, `${compared} answers`)
  }
})
