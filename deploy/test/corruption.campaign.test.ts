import { execFileSync } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import tap, { test } from 'tap'
import { z } from 'zod'
import { damageOf, openDamagedWorld, partOf, rightAnswers, tryDamage } from './service/corruption.js'

/** `CAMPAIGN_CASES` and `CAMPAIGN_SEED` choose other cases; those in CAMPAIGN_DIRECTORY are not repeated. */
const CASES = Number(process.env.CAMPAIGN_CASES ?? 500)
const FIRST = Number(process.env.CAMPAIGN_SEED ?? 1)
/** A case waits for a third of its time. */
const AT_ONCE = 2

// Making the world takes longer than tap's own limit of 30 s, also without the runner of campaigns.
tap.setTimeout(0)

const Case = z.object({
  /** Id of the tested build. */
  commit: z.string(),
  number: z.int(),
  file: z.string(),
  how: z.string(),
  outcome: z.string(),
  seconds: z.number(),
  failure: z.string()
})
type Case = z.infer<typeof Case>

test(`${CASES} damaged files from case ${FIRST} on are harmless or reported`, { timeout: 0 }, async (t) => {
  const folder = process.env.CAMPAIGN_DIRECTORY ?? t.testdir({})
  const file = join(folder, 'cases.ndjson')
  const commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim()
  const cases = readCases(file).filter(({ number }) => number >= FIRST && number < FIRST + CASES)
  const done = new Set(cases.map(({ number }) => number))
  const left = Array.from({ length: CASES }, (_, n) => FIRST + n).filter((number) => !done.has(number))
  const world = await openDamagedWorld(t, folder)
  const tried = async (number: number, name: string): Promise<Case> => {
    const begun = performance.now()
    const damage = damageOf(world, number)
    let found = await tryDamage(world, right, damage, name)
    if (found.outcome === 'silent' || found.outcome === 'verify') {
      // Answers about the last day move with the clock.
      right = await rightAnswers(world, name)
      found = await tryDamage(world, right, damage, name)
    }
    const { outcome, said, faults } = found
    const line = `case ${number}: ${damage.how} of ${damage.file} at ${damage.share.toFixed(4)}.${damage.bit}: ${outcome}. ${said}`
    if (process.env.CAMPAIGN_SAYS !== undefined) t.comment(line)
    const failure = outcome === 'silent' || faults.length > 0 ? `${line} ${faults.join('; ')}` : ''
    const seconds = (performance.now() - begun) / 1000
    return { commit, number, file: damage.file, how: damage.how, outcome, seconds, failure }
  }
  let right = await rightAnswers(world, 'right')
  const work = async (name: string): Promise<void> => {
    for (let number = left.shift(); number !== undefined; number = left.shift()) {
      const done = await tried(number, name)
      appendFileSync(file, `${JSON.stringify(done)}\n`)
      cases.push(done)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => work(`case-${n}`)))
  for (const line of linesOf(cases)) t.comment(`corruption: ${line}`)
  t.same(
    cases.flatMap(({ failure }) => failure || []),
    []
  )
})

function readCases(file: string): Case[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => Case.parse(JSON.parse(line)))
}

/** How many cases had each outcome, and of each build. */
function linesOf(cases: readonly Case[]): string[] {
  const counts = new Map<string, number>()
  for (const { commit, file, how, outcome } of cases)
    for (const kind of [`${partOf(file)} ${how} ${outcome}`, `build ${commit}`])
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
  const seconds = cases.reduce((sum, each) => sum + each.seconds, 0)
  return [
    ...[...counts].sort().map(([kind, count]) => `${kind}: ${count}`),
    `${cases.length} cases, ${(seconds / cases.length).toFixed(1)} s each, ${AT_ONCE} at a time`
  ]
}
