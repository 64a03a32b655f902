import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { z } from 'zod'
import { mistakes } from '../proof/simulate/bugs.js'
import { firstThatFinds } from '../proof/simulate/found-by.js'
import { runSeed } from '../proof/simulate/run-seed.js'
import { openTables, playAgain } from './service/simulated-statements.js'

/** `CAMPAIGN_SEEDS` and `CAMPAIGN_SEED` choose other worlds. */
const SEEDS = Number(process.env.CAMPAIGN_SEEDS ?? 5000)
const FIRST = Number(process.env.CAMPAIGN_SEED ?? 1)
const PROVE_SEEDS = 1000
const PLAYED_SEEDS = 25
/** Seeds between two reports of progress. */
const NOTE_SEEDS = 50

const Done = z.object({ first: z.int(), next: z.int(), deaths: z.int(), events: z.int() })

test(`${SEEDS} worlds from seed ${FIRST} on end with no row lost or wrong`, async (t) => {
  const file = join(process.env.CAMPAIGN_DIRECTORY ?? t.testdir({}), 'worlds.json')
  const kept = existsSync(file) ? Done.parse(JSON.parse(readFileSync(file, 'utf8'))) : undefined
  const isResumed = kept?.first === FIRST && kept.next < FIRST + SEEDS
  const done = isResumed ? kept : { first: FIRST, next: FIRST, deaths: 0, events: 0 }
  for (; done.next < FIRST + SEEDS; done.next += 1) {
    if (done.next % NOTE_SEEDS === 0) writeFileSync(file, JSON.stringify(done))
    const { faults, deaths, events } = await runSeed(done.next)
    done.deaths += deaths
    done.events += events
    if (faults.length > 0) t.fail(`npm run simulate -- --seeds 1 --seed ${done.next}: ${faults.join('\n')}`)
  }
  writeFileSync(file, JSON.stringify(done))
  t.ok(done.deaths > 0)
  t.comment(`simulator: ${SEEDS} worlds from seed ${FIRST} on, ${done.deaths} deaths, ${done.events} events`)
})

test('each classic mistake is found', async (t) => {
  for (const bug of Object.keys(mistakes)) {
    const found = await firstThatFinds(bug, FIRST, PROVE_SEEDS)
    t.ok(found !== undefined, `${bug}: ${found?.faults[0] ?? `not found by ${PROVE_SEEDS} seeds`}`)
    t.comment(`simulator: ${bug} is found by ${found?.seed}`)
  }
})

test('the plain folds and answers of the simulator are those of the SQL on ClickHouse', async (t) => {
  const tables = await openTables(t)
  let compared = 0
  for (let seed = FIRST; seed < FIRST + PLAYED_SEEDS; seed += 1)
    compared += await playAgain(tables, (await runSeed(seed, { isPlayed: true })).played)
  t.ok(compared > 0)
  t.comment(`simulator: ${compared} answers of ${PLAYED_SEEDS} worlds are those of ClickHouse`)
})
