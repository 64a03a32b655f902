import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { withTimeout } from '@gamenet/schemas'
import { type Environment, type Launched, launchGamenet, type Running } from '../../test/service/gamenet.js'
import type { Facts } from './facts.js'
import { insertsInto } from './inserts.js'
import type { Load } from './load.js'
import { isEngineKilled, type Moment, momentOf } from './moments.js'

/** Assumed duration of the first start; later starts are measured. */
const FIRST_START_MS = 8000
/** The process is killed after this time if the awaited event does not happen. */
const AIM_MS_MAX = 5000
const STOP_MS_MAX = 15_000

export type OneProcessNeeds = {
  readonly facts: Facts
  readonly load: Load
  readonly environment: Environment & { readonly DATA_DIR: string }
  readonly kills: number
  readonly note: (sentence: string) => void
  /** Called with all output of each process. */
  readonly written: (text: string) => void
}

/** Repeatedly starts the whole service on embedded engines and kills it. Returns the durations of complete starts, in ms. */
export async function killRepeatedly(needs: OneProcessNeeds): Promise<{ readonly startsMs: readonly number[] }> {
  const { facts, environment } = needs
  const startsMs: number[] = []
  for (const until = facts.counts.kills + needs.kills; facts.counts.kills < until; ) {
    const number = facts.counts.kills + facts.counts.stops
    const moment = momentOf(facts.seed, number)
    const began = performance.now()
    const life = launchGamenet(environment)
    const death = diedByItself(life)
    try {
      if (moment.at === 'start') {
        await Promise.race([pause(moment.share * (startsMs.at(-1) ?? FIRST_START_MS)), death])
      } else {
        await Promise.race([life.listening, death])
        startsMs.push(performance.now() - began)
        if (isEngineKilled(facts.seed, number)) {
          await killEngine(life)
          facts.add({ fact: 'struck', kind: 'kill', who: 'ClickHouse', when: 'any' })
        }
        await Promise.race([aim(needs, life, moment), death])
      }
    } finally {
      needs.written(life.stderr())
      await life.kill()
    }
    // A process that got SIGTERM may have ended before the SIGKILL.
    const kind = life.process.signalCode === 'SIGKILL' ? 'kill' : 'stop'
    facts.add({ fact: 'struck', kind, who: 'service', when: moment.at })
    needs.note(`${kind} ${facts.counts[`${kind}s`]}: ${JSON.stringify(moment)}`)
  }
  return { startsMs }
}

/** Kills the embedded ClickHouse only, which the service then starts again. */
async function killEngine({ process: { pid } }: Launched): Promise<void> {
  const pids = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ')
  for (const each of pids) {
    const command = await readFile(`/proc/${each}/cmdline`, 'utf8').catch(() => '')
    if (command.includes('child-main')) process.kill(Number(each), 'SIGKILL')
  }
}

/** Starts the service; rejects if it does not listen. */
export async function startOnce({ environment, written }: OneProcessNeeds): Promise<Running> {
  const life = launchGamenet(environment)
  try {
    return await life.listening
  } catch (error) {
    written(life.stderr())
    throw error
  }
}

/** Resolves at the instant of the kill. */
async function aim({ facts, load, environment }: OneProcessNeeds, life: Launched, moment: Moment): Promise<void> {
  const given = new AbortController()
  const atMost = pause(AIM_MS_MAX, undefined, { ref: false })
  try {
    if (moment.at === 'any') await pause(moment.afterMs)
    else if (moment.at === 'acknowledged') await Promise.race([load.acknowledged(moment.count), atMost])
    else if (moment.at === 'insert') {
      const tables = join(environment.DATA_DIR, 'tables')
      await Promise.race([insertsInto(tables, moment.count, given.signal), atMost])
    } else if (moment.at === 'frozen') {
      life.process.kill('SIGSTOP')
      await pause(moment.frozenMs)
      facts.add({ fact: 'struck', kind: 'pause', who: 'service', when: 'any' })
      if (moment.resumedMs === undefined) return
      life.process.kill('SIGCONT')
      await pause(moment.resumedMs)
    } else if (moment.at === 'shutdown') {
      life.process.kill('SIGTERM')
      await pause(moment.afterMs)
    }
  } finally {
    given.abort()
  }
}

/** Rejects when the process ends by itself with another code than 0; otherwise never settles. */
async function diedByItself(life: Launched): Promise<never> {
  const [code, signal] = (await once(life.process, 'exit')) as [number | null, NodeJS.Signals | null]
  if (signal === 'SIGKILL' || code === 0) return await new Promise<never>(() => undefined)
  throw new Error(`The service ended by itself with ${signal ?? code}: ${life.stderr().slice(-4000)}`)
}

/** Stops the service by SIGTERM; rejects unless it exits with 0. */
export async function stopCleanly(service: Running): Promise<void> {
  const code = await withTimeout(service.stop(), STOP_MS_MAX, () => 'late')
  if (code === 0) return
  await service.kill()
  throw new Error(`SIGTERM ended the service with ${code}: ${service.stderr().slice(-4000)}`)
}
