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

/** Kafka, PostgreSQL and ClickHouse, each a separate process, on a persistent directory. */
export type RealEngines = {
  readonly actors: readonly Actor[]
  readonly kafka: string
  readonly postgres: string
  readonly clickhouse: string
  /** ClickHouse's directory. */
  readonly tables: string
  /** Stops only ClickHouse, so that its tables can be opened. */
  stopClickHouse(): Promise<void>
  stop(): Promise<void>
}

export async function startRealEngines(directory: string): Promise<RealEngines> {
  const programs = postgresPrograms()
  if (programs === undefined) throw new Error('PostgreSQL is not installed (Debian: apt-get install postgresql).')
  mkdirSync(directory, { recursive: true })
  const tables = join(directory, 'tables')
  const port = await freePort()
  const [kafka, postgres, first] = await Promise.all([
    startKafkaBroker({ directory: join(directory, 'kafka') }),
    startPostgres(programs, { directory: join(directory, 'postgres') }),
    startClickHouseServer({ path: tables, port })
  ])
  let clickhouse = first
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
    {
      name: 'ClickHouse',
      ...mortal(async (downMs) => {
        await clickhouse.kill()
        await pause(downMs)
        clickhouse = await startClickHouseServer({ path: tables, port })
      }),
      freeze: async (ms) => {
        clickhouse.signal('SIGSTOP')
        await pause(ms)
        clickhouse.signal('SIGCONT')
      }
    }
  ]
  return {
    actors,
    kafka: kafka.address,
    postgres: postgres.url,
    clickhouse: first.url,
    tables,
    stopClickHouse: () => clickhouse.kill(),
    async stop() {
      await Promise.all([clickhouse.kill(), kafka.stop(), postgres.stop()])
    }
  }
}
