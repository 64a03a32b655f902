import { deleteUserRows } from '@gamenet/projector/erasure'
import { copyEvents, deleteImports, readForFold, readWeights, storePointers } from '@gamenet/projector/internals'
import { test } from 'tap'
import { mistakes } from '../proof/simulate/bugs.js'
import { readFoundBy } from '../proof/simulate/found-by.js'
import { type Outcome, runSeed } from '../proof/simulate/run-seed.js'
import type { Played } from '../proof/simulate/store.js'
import { openTables, playAgain } from './service/simulated-statements.js'

const foundBy = readFoundBy()
const SEEDS = new Set([...Array.from({ length: 8 }, (_, n) => n + 1), ...Object.values(foundBy)])

/**
 * Operations to repeat on ClickHouse, the rarest first: the world that reaches one with the fewest further statements is repeated up
 * to it and slightly further.
 */
const PLAYED: Readonly<Record<string, (played: Done) => boolean>> = {
  'rebuilt boards are swapped': ({ operation, input }) =>
    operation === storePointers && JSON.stringify(input).includes('"leaderboard_entry"'),
  'late events enter an event table that is reloaded': ({ operation }) => operation === copyEvents,
  'an import is undone': ({ operation }) => operation === deleteImports,
  'rows of a user are deleted': ({ operation }) => operation === deleteUserRows,
  'records of former folds are read': (played) => isRead(played, 'records'),
  'reached ranks of former folds are read': (played) => isRead(played, 'goals'),
  'boards are rebuilt by keys': ({ operation, input }) =>
    operation === readWeights && (input[0] as { name: string }).name === 'leaderboard-entry'
}
/** Statements that are repeated after it, so that answers show its effect. */
const PLAYED_BEHIND = 100

type Done = Extract<Played, { readonly operation: unknown }>

/** Whether a fold has read some rows by this name. */
function isRead({ operation, input, answer }: Done, name: string): boolean {
  return operation === readForFold && (input[1] as { name: string }).name === name && (answer as Uint8Array).length > 2
}

const worlds: Outcome[] = []

test(`${SEEDS.size} worlds of crashes, lost answers and jumping clocks end with no row lost or wrong`, async (t) => {
  for (const seed of SEEDS) {
    const outcome = await runSeed(seed, { isPlayed: true })
    worlds.push(outcome)
    if (outcome.faults.length > 0) t.fail(`npm run simulate -- --seeds 1 --seed ${seed}: ${outcome.faults.join('\n')}`)
  }
  const deaths = worlds.reduce((sum, outcome) => sum + outcome.deaths, 0)
  t.ok(deaths > 0, `${deaths} deaths`)
})

test('a seed always gives the same world', async (t) => {
  const [first, second] = [await runSeed(4, { isTraced: true }), await runSeed(4, { isTraced: true })]
  t.equal(first.fingerprint, second.fingerprint)
  t.same(first.trace, second.trace)
  t.ok(first.trace.length > 100)
})

test('each classic mistake is found', async (t) => {
  t.same(Object.keys(foundBy).sort(), Object.keys(mistakes).sort())
  for (const [bug, seed] of Object.entries(foundBy)) {
    const [fault] = (await runSeed(seed, { bug })).faults
    const again = 'not found; `npm run simulate -- --prove --write` looks for the first seed that finds it now'
    t.ok(fault !== undefined, `${bug}, seed ${seed}: ${fault ?? again}`)
  }
})

test('the plain folds and answers of the simulator are those of the SQL on ClickHouse', async (t) => {
  const tables = await openTables(t)
  const lengths = new Map<Outcome, number>()
  for (const [name, isIt] of Object.entries(PLAYED)) {
    const happens = (played: readonly Played[]) => played.findIndex((each) => 'operation' in each && isIt(each))
    if ([...lengths].some(([{ played }, length]) => happens(played.slice(0, length)) >= 0)) continue
    const found = worlds.map((world) => ({ world, at: happens(world.played) })).filter(({ at }) => at >= 0)
    const added = ({ world, at }: (typeof found)[number]) => at - (lengths.get(world) ?? 0)
    const [least] = found.sort((a, b) => added(a) - added(b))
    if (least === undefined) t.fail(`no world in which ${name}`)
    else lengths.set(least.world, least.at + PLAYED_BEHIND)
  }
  for (const [{ seed, played }, length] of lengths) {
    const compared = await playAgain(tables, played.slice(0, length))
    t.ok(compared > 50, `seed ${seed}, ${compared} answers`)
  }
})
