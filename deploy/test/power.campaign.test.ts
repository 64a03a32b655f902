import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'tap'
import type { Activity } from '../proof/torture/power/activities.js'
import { whyNoDisk } from '../proof/torture/power/disk.js'
import { cutPower, tableOf, textOf } from '../proof/torture/power/power.js'

/*
 * Cuts the power of a service under load repeatedly. POWER_CUTS says how often (20), POWER_SEED with which seed,
 * POWER_ACTIVITIES during which activities (else each, in an order of chance): `boards,rating`. What is kept in CAMPAIGN_DIRECTORY
 * is counted with it. A life costs most of a cut, so each has several cuts: all but the last on copies of its disk.
 */

test('a service whose power is cut during any work starts again, and has lost nothing', async (t) => {
  const directory = join(process.env.CAMPAIGN_DIRECTORY ?? t.testdir({}), 'power')
  const missing = whyNoDisk()
  if (missing !== undefined) throw new Error(missing)
  const count = Number(process.env.POWER_CUTS ?? 20)
  const order = process.env.POWER_ACTIVITIES?.split(',') as Activity[] | undefined
  const cuts = await cutPower({
    directory,
    cuts: count,
    states: 7,
    ...(order === undefined ? {} : { order }),
    seed: Number(process.env.POWER_SEED ?? randomInt(2 ** 31)),
    note: (sentence) => t.comment(sentence)
  })
  t.comment(tableOf(cuts))
  // What earlier runs have found is in the table.
  const wrong = cuts.slice(-count).filter(({ differences }) => differences.length > 0)
  t.same(wrong.map(textOf), [])
})
