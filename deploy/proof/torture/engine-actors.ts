import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type ClickHouse, openChdb, openClickHouseServer } from '@gamenet/engines'
import {
  createReplicated,
  freePort,
  postgresPrograms,
  replicaCommands,
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
  readonly directory: string
  /** Opens the tables of a service that is stopped, of each replica. */
  openTables(): Promise<readonly [ClickHouse, ...ClickHouse[]]>
  stop(): Promise<void>
}

type Tables = Pick<RealEngines, 'actors' | 'clickhouse' | 'openTables' | 'stop'>

/** Starts the engines, with one ClickHouse, or on the replicas that CLICKHOUSE_REPLICAS names. */
export async function startRealEngines(
  directory: string,
  { onReplicas }: { readonly onReplicas: boolean }
): Promise<RealEngines> {
  const programs = postgresPrograms()
  if (programs === undefined) throw new Error('PostgreSQL is not installed (Debian: apt-get install postgresql).')
  mkdirSync(directory, { recursive: true })
  const [kafka, postgres, tables] = await Promise.all([
    startKafkaBroker({ directory: join(directory, 'kafka') }),
    startPostgres(programs, { directory: join(directory, 'postgres') }),
    onReplicas ? replicas(directory) : oneServer(join(directory, 'tables'))
  ])
  const actors: Actor[] = [
    ...tables.actors,
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
    }
  ]
  return {
    ...tables,
    actors,
    directory,
    kafka: kafka.address,
    postgres: postgres.url,
    async stop() {
      await Promise.all([tables.stop(), kafka.stop(), postgres.stop()])
    }
  }
}

/** Prevents a second kill until the engine runs again. */
function mortal(work: (downMs: number) => Promise<void>): Pick<Actor, 'isAlive' | 'strike'> {
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

async function oneServer(path: string): Promise<Tables> {
  const port = await freePort()
  let server = await startClickHouseServer({ path, port })
  const actor: Actor = {
    name: 'ClickHouse',
    ...mortal(async (downMs) => {
      await server.kill()
      await pause(downMs)
      server = await startClickHouseServer({ path, port })
    }),
    freeze: async (ms) => {
      server.signal('SIGSTOP')
      await pause(ms)
      server.signal('SIGCONT')
    }
  }
  return {
    actors: [actor],
    clickhouse: server.url,
    openTables: async () => {
      await server.kill()
      return [await openChdb({ path })]
    },
    stop: () => server.kill()
  }
}

/** Each replica and the keeper are killed, and replicas stop to fetch parts for a time. A further run continues. */
async function replicas(directory: string): Promise<Tables> {
  const { kill, start, keeper } = replicaCommands()
  const hash = createHash('sha256').update(directory).digest('hex')
  const urls = await createReplicated(`torture_${hash.slice(0, 16)}`)
  const run = async (command: string) => {
    const [program = '', ...words] = command.split(' ')
    await promisify(execFile)(program, words)
  }
  const killed = (name: string, commands: { readonly kill: string; readonly start: string }): Actor => ({
    name,
    ...mortal(async (downMs) => {
      await run(commands.kill)
      await pause(downMs)
      await run(commands.start)
    })
  })
  const fetching = urls.map(
    (url, at): Actor => ({
      name: `fetches ${at + 1}`,
      ...mortal(async (downMs) => {
        const server = openClickHouseServer({ url })
        // A replica that is away, or ends meanwhile, fetches again when it is back.
        await server.control.execute('SYSTEM STOP FETCHES').catch(() => undefined)
        await pause(downMs)
        await server.control.execute('SYSTEM START FETCHES').catch(() => undefined)
        await server.close()
      })
    })
  )
  return {
    actors: [
      ...urls.map((_, at) => killed(`replica ${at + 1}`, { kill: `${kill} ${at + 1}`, start: `${start} ${at + 1}` })),
      ...(keeper === undefined ? [] : [killed('keeper', keeper)]),
      ...fetching
    ],
    clickhouse: urls.join(','),
    openTables: async () => {
      const [first, ...others] = urls.map((url) => openClickHouseServer({ url }))
      if (first === undefined) throw new Error('CLICKHOUSE_REPLICAS names no replica.')
      return [first, ...others]
    },
    stop: async () => undefined
  }
}
