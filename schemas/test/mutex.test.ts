import { setImmediate as tick } from 'node:timers/promises'
import { test } from 'tap'
import { Mutex } from '../src/async/mutex.js'

test('work runs one piece at a time in the order of the calls, also after a failure', async (t) => {
  const mutex = new Mutex()
  const steps: string[] = []
  const work = (name: string, fails = false) =>
    mutex.run(async () => {
      steps.push(`${name} begins`)
      await tick()
      steps.push(`${name} ends`)
      if (fails) throw new Error(name)
      return name
    })
  const results = Promise.allSettled([work('first'), work('second', true), work('third')])
  await mutex.idle()
  t.same(
    steps,
    ['first', 'second', 'third'].flatMap((name) => [`${name} begins`, `${name} ends`])
  )
  t.same(
    (await results).map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled']
  )
})
