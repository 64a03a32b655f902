import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import {
  freePort,
  postgresPrograms,
  startClickHouseServer,
  startKafkaBroker,
  startPostgres
} from '@gamenet/engines/testing'
import type { Actor } from './role.js'

/** Kafka, PostgreSQL, and ClickHouse over HTTP, each a separate process, on a persistent directory. */
export type RealEngines = {
  readonly actors: readonly Actor[]
  readonly kafka: string
  readonly postgres: string
  readonly clickhouse: string
  /** The directory of the front's tables. */
  readonly tables: string
  /** Number of times that the front hung and was killed. */
  timesStuck(): number
  /** Stops only the front, so that its tables can be opened. */
  stopFront(): Promise<void>
  stop(): Promise<void>
}

const LOOK_MS = 5000
const LOOK_MS_MAX = 10_000
/** Far above the second within which all statements end here. */
const STUCK_SECONDS = 60
const STUCK_SQL = `SELECT p.query FROM system.processes AS p WHERE p.elapsed > ${STUCK_SECONDS} ORDER BY p.elapsed DESC LIMIT 1 FORMAT TSV`

export async function startRealEngines(directory: string, note: (sentence: string) => void): Promise<RealEngines> {
  const programs = postgresPrograms()
  if (programs === undefined) throw new Error('PostgreSQL is not installed (Debian: apt-get install postgresql).')
  mkdirSync(directory, { recursive: true })
  const tables = join(directory, 'tables')
  const port = await freePort()
  const [kafka, postgres, firstFront] = await Promise.all([
    startKafkaBroker({ directory: join(directory, 'kafka') }),
    startPostgres(programs, { directory: join(directory, 'postgres') }),
    startClickHouseServer({ path: tables, port })
  ])
  let front = firstFront
  const startFront = async (): Promise<void> => {
    front = await startClickHouseServer({ path: tables, port })
  }
  /** Prevents a second kill until the engine runs again. */
  const mortal = (work: (downMs: number) => Promise<void>): Pick<Actor, 'isAlive' | 'strike'> => {
    let isUp = true
    return {
      isAlive: () => isUp,
      async strike({ downMs }) {
        isUp = false
        await work(downMs)
        isUp = true
      }
    }
  }
  const frontActor: Actor = {
    name: 'ClickHouse front',
    ...mortal(async (downMs) => {
      await front.kill()
      await pause(downMs)
      await startFront()
    }),
    freeze: async (ms) => {
      front.signal('SIGSTOP')
      await pause(ms)
      front.signal('SIGCONT')
    }
  }
  const over = new AbortController()
  let timesStuck = 0
  const noteStuck = (sentence: string): void => {
    timesStuck += 1
    note(sentence)
  }
  const watching = killWhenStuck(frontActor, firstFront.url, noteStuck, over.signal)
  const actors: Actor[] = [
    {
      name: 'broker',
      ...mortal(async (downMs) => {
        await kafka.kill()
        await pause(downMs)
        await kafka.restart()
      }),
      freeze: async (ms) => {
        kafka.signal('SIGSTOP')
        await pause(ms)
        kafka.signal('SIGCONT')
      }
    },
    {
      name: 'PostgreSQL',
      ...mortal(async (downMs) => {
        await postgres.kill()
        await pause(downMs)
        await postgres.start()
      })
    },
    frontActor
  ]
  return {
    actors,
    kafka: kafka.address,
    postgres: postgres.url,
    clickhouse: front.url,
    tables,
    timesStuck: () => timesStuck,
    async stopFront() {
      over.abort()
      await watching
      await front.kill()
    },
    async stop() {
      over.abort()
      await watching
      await Promise.all([front.kill(), kafka.stop(), postgres.stop()])
    }
  }
}

/**
 * Kills a front whose statement hangs, as a supervisor would: in chDB 3.4.0 an INSERT of five rows sometimes hangs, and
 * its time limit does not stop it.
 */
async function killWhenStuck(
  front: Actor,
  url: string,
  note: (sentence: string) => void,
  signal: AbortSignal
): Promise<void> {
  while (await pause(LOOK_MS, true, { signal, ref: false }).catch(() => false)) {
    if (!front.isAlive()) continue
    const response = fetch(`${url}/?${new URLSearchParams({ query: STUCK_SQL })}`, {
      method: 'POST',
      signal: AbortSignal.timeout(LOOK_MS_MAX)
    })
    const statement = await response.then((answer) => (answer.ok ? answer.text() : '')).catch(() => '')
    if (statement === '' || signal.aborted || !front.isAlive()) continue
    note(`ClickHouse is killed, because this statement has run for ${STUCK_SECONDS} s: ${statement}`)
    await front.strike({ downMs: 0 }).catch((error: unknown) => note(String(error)))
  }
}
