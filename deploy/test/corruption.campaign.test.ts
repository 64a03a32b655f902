import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { z } from 'zod'
import { damageOf, openDamagedWorld, partOf, rightAnswers, tryDamage } from './service/corruption.js'

/** `CAMPAIGN_CASES` and `CAMPAIGN_SEED` choose other cases. */
const CASES = Number(process.env.CAMPAIGN_CASES ?? 500)
const FIRST = Number(process.env.CAMPAIGN_SEED ?? 1)

const Done = z.object({
  first: z.int(),
  next: z.int(),
  counts: z.record(z.string(), z.int()),
  failures: z.array(z.string())
})

test(`${CASES} damaged files from case ${FIRST} on are harmless or reported`, { timeout: 0 }, async (t) => {
  const folder = process.env.CAMPAIGN_DIRECTORY ?? t.testdir({})
  const file = join(folder, 'cases.json')
  const kept = existsSync(file) ? Done.parse(JSON.parse(readFileSync(file, 'utf8'))) : undefined
  const isResumed = kept?.first === FIRST && kept.next < FIRST + CASES
  const done = isResumed ? kept : { first: FIRST, next: FIRST, counts: {} as Record<string, number>, failures: [] }
  const world = await openDamagedWorld(t, folder)
  let right = await rightAnswers(world)
  for (; done.next < FIRST + CASES; done.next += 1) {
    const damage = damageOf(world, done.next)
    let found = await tryDamage(world, right, damage)
    if (found.outcome === 'silent' || found.outcome === 'verify') {
      // Answers about the last day move with the clock.
      right = await rightAnswers(world)
      found = await tryDamage(world, right, damage)
    }
    const kind = `${partOf(damage.file)} ${damage.how} ${found.outcome}`
    done.counts[kind] = (done.counts[kind] ?? 0) + 1
    const line = `case ${done.next}: ${damage.how} of ${damage.file} at ${damage.share.toFixed(4)}.${damage.bit}: ${found.outcome}. ${found.said}`
    if (process.env.CAMPAIGN_SAYS !== undefined) t.comment(line)
    if (found.outcome === 'silent' || found.faults.length > 0) {
      const failure = `${line} ${found.faults.join('; ')}`
      done.failures.push(failure)
      t.fail(failure)
    }
    writeFileSync(file, JSON.stringify({ ...done, next: done.next + 1 }))
  }
  t.same(done.failures, [])
  for (const [kind, cases] of Object.entries(done.counts).sort()) t.comment(`corruption: ${kind}: ${cases}`)
})
