import { openEmbeddedLog } from '@gamenet/engines/log'
import { test } from 'tap'
import { testLog } from './log-contract.js'

testLog({
  name: 'embedded log',
  runs: 100,
  async place(t) {
    const path = t.testdir()
    return {
      async open({ partitions, epoch = 1 }) {
        const log = openEmbeddedLog({ path, partitions, epoch })
        t.teardown(() => log.close())
        return log
      }
    }
  }
})

test('a check of a large batch lets the event loop turn between its parts', async (t) => {
  const log = openEmbeddedLog({ path: t.testdir() })
  t.teardown(() => log.close())
  const messages = Array.from({ length: 2000 }, (_, n) => ({ key: 'k', value: String(n), headers: {} }))
  await log.append('counted', messages)
  let [turns, isEnded] = [0, false]
  const turn = () => {
    turns += 1
    if (!isEnded) setImmediate(turn)
  }
  turn()
  const seen: { values: unknown[]; bytes: number; turns: number }[] = []
  const faults = await log.check(
    async ({ records }, bytes) => {
      seen.push({ values: records.map(({ value }) => value), bytes, turns })
    },
    () => true
  )
  isEnded = true
  t.same(faults, [])
  t.same(
    seen.flatMap(({ values }) => values),
    messages.map(({ value }) => value)
  )
  t.same(
    seen.map(({ values }) => values.length),
    [512, 512, 512, 464]
  )
  t.equal(new Set(seen.map((each) => each.turns)).size, seen.length, 'each part in a later turn')
  t.same(
    seen.map(({ bytes }) => bytes > 0),
    [false, false, false, true],
    'the bytes of a batch count once'
  )
  const ranges: unknown[] = []
  const check = log.check(
    async ({ first, next, records }) => {
      ranges.push([first, next, records.length])
    },
    () => false
  )
  t.same(await check, [])
  t.same(ranges, [[0, 2000, 0]], 'no record is made of a topic that is only checked')
})
