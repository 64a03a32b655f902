import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'tap'
import type { Activity } from '../proof/torture/power/activities.js'
import { whyNoDisk } from '../proof/torture/power/disk.js'
import { cutPower, tableOf, textOf } from '../proof/torture/power/power.js'

/*
 * Cuts the power of a service under load repeatedly. POWER_CUTS is the number of cuts (20), POWER_SEED the seed,
 * POWER_ACTIVITIES the activities (default: each, in random order), such as `boards,rating`. Results in
 * CAMPAIGN_DIRECTORY are included. A life costs most of a cut, so each has several cuts: all but the last on copies of
 * its disk.
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
  // The table includes the results of earlier runs.
  const wrong = cuts.slice(-count).filter(({ differences }) => differences.length > 0)
  t.same(wrong.map(textOf), [])
})
