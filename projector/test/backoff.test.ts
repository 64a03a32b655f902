import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { pause } from '../src/backoff.js'

test('many wait by one signal, without a warning of a leak, and none longer than it', async (t) => {
  const warnings: string[] = []
  const hear = ({ name }: Error) => warnings.push(name)
  process.on('warning', hear)
  t.teardown(() => process.off('warning', hear))
  const stopping = new AbortController()
  const pauses = Array.from({ length: 20 }, () => pause(3_600_000, stopping.signal))
  await turn()
  stopping.abort()
  await Promise.all(pauses)
  t.same(warnings, [])
})
