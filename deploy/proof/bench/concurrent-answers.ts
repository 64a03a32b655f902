import { setTimeout as pause } from 'node:timers/promises'
import { NEW_EVERY, startLoad } from './even-load.js'
import { figure, quantile, type Result } from './measurement.js'
import type { QuietService } from './quiet-service.js'

const WARMING_MS = 3000

/** Work during answers. `work` runs for about that many milliseconds and returns what it has done. */
export type Concurrent = { readonly what: string; work(ms: number): Promise<string> }

/**
 * Sends requests during each of `works` and during none, in turns, so that changes of the machine's pace meet all of them; returns the
 * p99 against idle, and the requests that failed.
 */
export async function concurrentAnswers(
  service: QuietService,
  works: readonly Concurrent[],
  { rounds, ms, timesIdle }: { readonly rounds: number; readonly ms: number; readonly timesIdle: number },
  note: (sentence: string) => void
): Promise<Result[]> {
  const idle: Concurrent = { what: 'nothing', work: async () => await pause(ms, '') }
  const loads = [idle, ...works].map((each) => ({ ...each, times: [] as number[], done: [] as string[] }))
  const failures: string[] = []
  const ask = async (work: Promise<string>) => {
    const load = startLoad(service)
    const done = await work
    await load.stop()
    failures.push(...load.failures)
    return { times: load.times, done }
  }
  await ask(pause(WARMING_MS, ''))
  for (let round = 0; round < rounds; round += 1) {
    for (const load of loads) {
      note(`asking during ${load.what}`)
      const { times, done } = await ask(load.work(ms))
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
        reach: { bound: 'at most', value: timesIdle, of: 'ratio' },
        detail: `median ${figure(quantile(times, 0.5))} ms, idle ${figure(quantile(idleTimes, 0.5))} ms; ${done.join(', ')}; new questions are one of ${NEW_EVERY}`
      })
    ),
    {
      what: `requests that failed, of ${figure(loads.reduce((sum, { times }) => sum + times.length, 0))}`,
      measured: failures.length,
      unit: '',
      reach: { bound: 'at most', value: 0, of: 'measured' },
      detail: failures[0] ?? ''
    }
  ]
}
