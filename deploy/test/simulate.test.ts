import {
  copyEvents,
  deleteImports,
  exchangeTables,
  readForFold,
  readNewestAnnouncement
} from '@gamenet/projector/internals'
import { test } from 'tap'
import { mistakes } from '../proof/simulate/bugs.js'
import { readFoundBy } from '../proof/simulate/found-by.js'
import { type Outcome, runSeed } from '../proof/simulate/run-seed.js'
import type { Played } from '../proof/simulate/store.js'
import { openTables, playAgain } from './service/simulated-statements.js'

const foundBy = readFoundBy()
const SEEDS = new Set([...Array.from({ length: 40 }, (_, n) => n + 1), ...Object.values(foundBy)])

/** What chDB does too: of the worlds in which it happens the shortest is played again. */
const PLAYED: Readonly<Record<string, (played: Done) => boolean>> = {
  'an import is taken back': ({ operation }) => operation === deleteImports,
  'what comes late goes into an event table that is reloaded': ({ operation }) => operation === copyEvents,
  'rebuilt boards are swapped': ({ operation, input }) =>
    operation === exchangeTables && JSON.stringify(input).includes('"leaderboard_entry"'),
  'another process is asked about its swap': ({ operation, answer }) =>
    operation === readNewestAnnouncement && answer !== undefined,
  'records are carried on': (played) => isRead(played, 'records'),
  'reached ranks are carried on': (played) => isRead(played, 'goals')
}

type Done = Extract<Played, { readonly operation: unknown }>

/** Whether a fold has read some rows by this name. */
function isRead({ operation, input, answer }: Done, name: string): boolean {
  return operation === readForFold && (input[1] as { name: string }).name === name && (answer as Uint8Array).length > 2
}

const worlds: Outcome[] = []

test(`${SEEDS.size} worlds of crashes, lost answers and jumping clocks end with nothing lost and nothing wrong`, async (t) => {
  for (const seed of SEEDS) {
    const outcome = await runSeed(seed, { isPlayed: true })
    worlds.push(outcome)
    if (outcome.faults.length > 0) t.fail(`npm run simulate -- --seeds 1 --seed ${seed}: ${outcome.faults.join('\n')}`)
  }
  const deaths = worlds.reduce((sum, outcome) => sum + outcome.deaths, 0)
  t.ok(deaths > 0, `${deaths} deaths`)
})

test('a world happens again in the same way', async (t) => {
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

test('the plain folds and answers of the simulator are those of the SQL on chDB', async (t) => {
  const tables = await openTables(t)
  const left = new Map(Object.entries(PLAYED))
  for (const { seed, played } of worlds.toSorted((a, b) => a.played.length - b.played.length)) {
    const done = played.filter((each): each is Done => 'operation' in each)
    const here = [...left].filter(([, isIt]) => done.some(isIt))
    if (here.length === 0) continue
    for (const [name] of here) left.delete(name)
    const compared = await playAgain(tables, played)
    t.ok(compared > 50, `seed ${seed}, ${compared} answers: ${here.map(([name]) => name).join('; ')}`)
  }
  t.same([...left.keys()], [], 'all of it happens in one of the worlds')
})
