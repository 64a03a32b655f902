import { test } from 'tap'
import { whyNoDisk } from '../proof/torture/power/disk.js'
import { cutPower, textOf } from '../proof/torture/power/power.js'

const missing = whyNoDisk()
if (missing !== undefined && process.env.CI === 'true' && process.getuid?.() === 0) throw new Error(missing)
if (missing !== undefined) console.error(`NOT TESTED: loss of power; ${missing}.`)

test(
  'a service whose power is cut starts again, and has lost nothing, even if it is cut once more while it starts',
  missing === undefined ? {} : { skip: missing },
  async (t) => {
    const cuts = await cutPower({
      directory: t.testdir({}),
      cuts: 1,
      seed: 835,
      order: ['rating'],
      calm: 8,
      note: (sentence) => t.comment(sentence)
    })
    t.same(cuts.filter(({ differences }) => differences.length > 0).map(textOf), [])
    t.match(
      cuts,
      [{ isTwice: true, tornBytes: 512, flushed: 'at' }],
      'a cut while users rate, one during the start after it'
    )
  }
)
