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

test('a check unpacks only the chosen batches, and a failure of its caller ends it', async (t) => {
  const log = openEmbeddedLog({ path: t.testdir() })
  t.teardown(() => log.close())
  const messages = Array.from({ length: 20 }, (_, n) => ({ key: 'k', value: String(n), headers: {} }))
  await log.append('plain', messages)
  await log.append('read', messages)
  const seen: unknown[] = []
  const faults = await log.check(
    async ({ topic, first, next, bytes, stored }) => {
      seen.push([topic, first, next, bytes > 0, messages.map((_, n) => stored?.valueAt(n))])
    },
    ({ topic, first, next }) => topic === 'read' && first === 0 && next === messages.length
  )
  t.same(faults, [])
  t.same(seen, [
    ['plain', 0, 20, true, messages.map(() => undefined)],
    ['read', 0, 20, true, messages.map(({ value }) => value)]
  ])
  const stopped = new Error('stopped')
  await t.rejects(
    log.check(
      () => Promise.reject(stopped),
      () => false
    ),
    stopped
  )
})
