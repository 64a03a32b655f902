import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ClickHouse } from '@gamenet/engines'
import { leaderboardEntryTopic } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { append, compare } from './any-event.js'
import { foldOf, type RowsByTable, readRows } from './fold.js'
import { MemoryLog } from './memory-log.js'
import { emptyTables, openTables, projectorOn } from './pipeline.js'
import { keyIn, Log, live, WAYS, Way } from './spoilt-key.js'

/** `CAMPAIGN_CASES` chooses a number of kills in all; those done in CAMPAIGN_DIRECTORY are not repeated. */
const KILLS = Number(process.env.CAMPAIGN_CASES ?? 200)
type Given = Parameters<typeof live>[1]

/** A step of a rebuild: its statement, or the table of its insert, whatever the numbers, keys and instants. */
function stepOf(what: string): string {
  return what
    .replace(/'[^']*'/g, "''")
    .replace(/\d+/g, '0')
    .replace(/\s+/g, ' ')
}

/**
 * Runs a life of a process on a log with a board whose rows somebody has made wrong, the same ones for the same number.
 * The next life completes what it began; then all tables equal the plain fold.
 */
async function spoilt(engine: ClickHouse, number: number, run: (given: Given) => Promise<boolean>): Promise<boolean> {
  await emptyTables(engine.control)
  const log = new MemoryLog(() => 5)
  for (const each of fc.sample(Log, { numRuns: 4, seed: number }).flat()) append(log, each)
  const key = keyIn(log, leaderboardEntryTopic)
  if (key === undefined) return false
  const [way = 'edited'] = fc.sample(Way, { numRuns: 1, seed: number })
  const first = projectorOn(engine, log)
  first.start()
  await first.caughtUp()
  await WAYS[way](engine, key, log)
  await first.stop()
  const given = { log, spoilt: key }
  const hasDied = await run(given)
  await live(engine, given, () => false)
  const last = projectorOn(engine, log)
  last.start()
  await last.caughtUp()
  await last.stop()
  // Names of players are of several boards: a name that only an undone import has stays until these are rebuilt.
  const left = way === 'undone' ? ['player'] : []
  const compared = (rows: RowsByTable) => new Map([...rows].filter(([table]) => !left.includes(table)))
  compare(compared(await readRows(engine.control)), compared(foldOf(log)), false)
  return hasDied
}

test(`${KILLS} kills at each step of a rebuild of one key leave all tables equal to the plain fold`, {
  timeout: 0
}, async (t) => {
  const alive = setInterval(() => undefined, 1000)
  t.teardown(() => clearInterval(alive))
  const engine = await openTables()
  const file = join(process.env.CAMPAIGN_DIRECTORY ?? t.testdir({}), 'kills.ndjson')
  const tried: { step: string; hasDied: boolean }[] = existsSync(file)
    ? readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    : []
  const kills = () => tried.filter(({ hasDied }) => hasDied).length
  const steps = new Set<string>()
  await spoilt(engine, 0, (given) =>
    live(engine, given, (what) => {
      steps.add(stepOf(what))
      return false
    })
  )
  while (kills() < KILLS && tried.length < 2 * KILLS) {
    const step = [...steps][tried.length % steps.size] ?? ''
    // A world may end without this step.
    const hasDied = await spoilt(engine, tried.length + 1, (given) =>
      live(engine, given, (what) => stepOf(what) === step)
    )
    tried.push({ step, hasDied })
    appendFileSync(file, `${JSON.stringify({ step, hasDied })}\n`)
  }
  const died = new Set(tried.flatMap(({ step, hasDied }) => (hasDied ? [step] : [])))
  t.comment(`rebuild of one key: ${kills()} of ${KILLS} kills, at ${died.size} of ${steps.size} steps`)
  t.equal(kills(), KILLS)
})
