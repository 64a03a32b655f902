import { setTimeout as pause } from 'node:timers/promises'
import { NEW_EVERY, startLoad } from './even-load.js'
import { figure, quantile, type Result } from './measurement.js'
import type { QuietService } from './quiet-service.js'

const WARMING_MS = 3000

/** Work that competes with requests. `work` runs for about `ms` milliseconds and returns a summary of it. */
export type Concurrent = { readonly what: string; work(ms: number): Promise<string> }

/**
 * Sends requests during each of `works` and on the idle service, in alternating rounds, so that changes of the machine's speed
 * affect all alike. Returns the p99 of each against idle, and the number of failed requests.
 */
export async function concurrentAnswers(
  service: QuietService,
  works: readonly Concurrent[],
  { rounds, ms, timesIdle }: { readonly rounds: number; readonly ms: number; readonly timesIdle: number },
  note: (sentence: string) => void
): Promise<Result[]> {
  const idle: Concurrent = { what: 'idle time', work: async () => await pause(ms, '') }
  const loads = [idle, ...works].map((each) => ({ ...each, times: [] as number[], done: [] as string[] }))
  const failures: string[] = []
  const measure = async (work: Promise<string>) => {
    const load = startLoad(service)
    const done = await work
    await load.stop()
    failures.push(...load.failures)
    return { times: load.times, done }
  }
  await measure(pause(WARMING_MS, ''))
  for (let round = 0; round < rounds; round += 1) {
    for (const load of loads) {
      note(`requests during ${load.what}`)
      const { times, done } = await measure(load.work(ms))
      load.times.push(...times)
      load.done.push(done)
    }
  }
  const [{ times: idleTimes } = { times: [] }, ...others] = loads
  return [
    ...others.map(
      ({ what, times, done }): Result => ({
        what: `an answer during ${what}, p99`,
        measured: quantile(times, 0.99),
        unit: 'ms',
        baseline: { what: 'idle', measured: quantile(idleTimes, 0.99) },
        target: { bound: 'at most', value: timesIdle, of: 'ratio' },
        detail: `median ${figure(quantile(times, 0.5))} ms, idle ${figure(quantile(idleTimes, 0.5))} ms; ${done.join(', ')}; one in ${NEW_EVERY} requests is new`
      })
    ),
    {
      what: `requests that failed, of ${figure(loads.reduce((sum, { times }) => sum + times.length, 0))}`,
      measured: failures.length,
      unit: '',
      target: { bound: 'at most', value: 0, of: 'measured' },
      detail: failures[0] ?? ''
    }
  ]
}
