import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import {
  freePort,
  postgresPrograms,
  startClickHouseFront,
  startKafkaBroker,
  startPostgres
} from '@gamenet/engines/testing'
import type { Actor } from './role.js'

/** Kafka, PostgreSQL, and ClickHouse over HTTP, each a process of its own, on a directory that is kept. */
export type RealEngines = {
  readonly actors: readonly Actor[]
  readonly kafka: string
  readonly postgres: string
  readonly clickhouse: string
  /** Where the front keeps its tables. */
  readonly tables: string
  /** Ends the front alone, so that its tables can be opened. */
  stopFront(): Promise<void>
  stop(): Promise<void>
}

export async function startRealEngines(directory: string): Promise<RealEngines> {
  const programs = postgresPrograms()
  if (programs === undefined) throw new Error('PostgreSQL is not installed (Debian: apt-get install postgresql).')
  mkdirSync(directory, { recursive: true })
  const tables = join(directory, 'tables')
  const port = await freePort()
  const [kafka, postgres, firstFront] = await Promise.all([
    startKafkaBroker({ directory: join(directory, 'kafka') }),
    startPostgres(programs, { directory: join(directory, 'postgres') }),
    startClickHouseFront({ path: tables, port })
  ])
  let front = firstFront
  const startFront = async (): Promise<void> => {
    front = await startClickHouseFront({ path: tables, port })
  }
  /** An engine is killed again only when it is up. */
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
  const actors: Actor[] = [
    {
      name: 'broker',
      ...mortal(async (downMs) => {
        await kafka.kill()
        await wait(downMs)
        await kafka.restart()
      }),
      freeze: async (ms) => {
        kafka.signal('SIGSTOP')
        await wait(ms)
        kafka.signal('SIGCONT')
      }
    },
    {
      name: 'PostgreSQL',
      ...mortal(async (downMs) => {
        await postgres.kill()
        await wait(downMs)
        await postgres.start()
      })
    },
    {
      name: 'ClickHouse front',
      ...mortal(async (downMs) => {
        await front.kill()
        await wait(downMs)
        await startFront()
      }),
      freeze: async (ms) => {
        front.signal('SIGSTOP')
        await wait(ms)
        front.signal('SIGCONT')
      }
    }
  ]
  return {
    actors,
    kafka: kafka.address,
    postgres: postgres.url,
    clickhouse: front.url,
    tables,
    stopFront: () => front.stop(),
    async stop() {
      await Promise.all([front.stop(), kafka.stop(), postgres.stop()])
    }
  }
}
