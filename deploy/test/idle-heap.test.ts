import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { collectWhenIdle } from '../src/wiring/idle-heap.js'

test('an idle heap that has grown is collected until it is small again', async (t) => {
  const heapBytes = () => process.memoryUsage().heapUsed
  let collections = 0
  const observer = new PerformanceObserver((list) => {
    collections += list.getEntries().filter(isForced).length
  })
  observer.observe({ entryTypes: ['gc'] })
  t.teardown(() => observer.disconnect())
  t.teardown(collectWhenIdle(50))
  const needed = heapBytes()
  const garbage = Array.from({ length: 2_000_000 }, (_, i) => [i])
  t.ok(heapBytes() - needed > 64 * 1024 * 1024)
  garbage.length = 0
  while (collections === 0 || heapBytes() - needed > 48 * 1024 * 1024) await pause(50)
  for (let check = 0; check < 20; check += 1) await pause(50)
  t.ok(collections <= 3, `${collections} collections, and none without growth`)
})

/** Returns whether the program asked for this collection. */
function isForced(entry: PerformanceEntry & { readonly detail?: { readonly flags?: number } }): boolean {
  return ((entry.detail?.flags ?? 0) & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0
}
