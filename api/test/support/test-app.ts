import { type AddressInfo, connect } from 'node:net'
import { Readable, Writable } from 'node:stream'
import { type DataChanges, generationName, INSTANTS_END_MS, type ServingTables } from '@gamenet/schemas'
import Fastify, { type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { Registry } from 'prom-client'
import { z } from 'zod'
import { DataVersions } from '../../src/answers/data-versions.js'
import type { Endpoint } from '../../src/answers/endpoint.js'
import { type ApiNeeds, buildApp } from '../../src/app.js'
import { boardsOf } from '../../src/queries/board-descriptions.js'
import { catalogOf } from '../../src/queries/catalog.js'
import type { StreamedTables } from '../../src/read-tables.js'
import { integer, oneOf, text } from '../../src/request/parameters.js'

/** The teardown of a test. */
export type Teardown = { teardown(end: () => unknown): void }

/** A logger, and the lines that it has written. */
export function logOfLines(level = 'info'): { readonly logger: FastifyBaseLogger; readonly lines: readonly string[] } {
  const lines: string[] = []
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(String(chunk))
      done()
    }
  })
  return { logger: Fastify({ logger: { stream, level } }).log as FastifyBaseLogger, lines }
}

/** A row of `data_change`. */
export type ChangeRow = { version: number; projection: string; key?: string; fromMs: number; toMs: number }

/** Tables without an engine: changes, and an answer of the test to every other query. */
export class TestTables implements StreamedTables {
  readonly changes: ChangeRow[] = []
  /** Number of queries except those of changes. */
  asked = 0
  answer: (parameters: Readonly<Record<string, unknown>>, signal: AbortSignal | undefined) => Promise<unknown[]> =
    async () => []
  /** Set to make reads of changes fail. */
  away: Error | undefined
  /** Reads the changes. */
  readonly stored: DataChanges = {
    newestBegin: async () => {
      if (this.away !== undefined) throw this.away
      return Math.max(0, ...this.changes.map(({ fromMs }) => fromMs))
    },
    since: async (after, minutesFromMs) => {
      if (this.away !== undefined) throw this.away
      return this.changes
        .filter(({ version }) => version > after)
        .map(({ key = '*', ...change }) => ({ ...change, key, ...widened(change, change.toMs > minutesFromMs) }))
    }
  }

  async rows(_sql: string, parameters: Readonly<Record<string, unknown>>, options: { signal?: AbortSignal } = {}) {
    if (this.away !== undefined) throw this.away
    this.asked += 1
    return (await this.answer(parameters, options.signal)) as Record<string, unknown>[]
  }

  async json(sql: string, parameters: Readonly<Record<string, unknown>>, options: { signal?: AbortSignal } = {}) {
    return Buffer.from(JSON.stringify(await this.rows(sql, parameters, options)))
  }

  /** Set to the chunks of a stream. */
  streamed: () => Readable = () => Readable.from([])

  async stream(sql: string, parameters: Readonly<Record<string, unknown>>, options: { signal?: AbortSignal }) {
    await this.rows(sql, parameters, options)
    return this.streamed()
  }
}

type Counts = { days: number; metric: string; filter?: string | undefined }

/** Tables that are all read from one generation, after a number of changes. */
export function servingAt(generation: number, counter: number): ServingTables {
  const nameOf = (table: string) => generationName(table, generation)
  return { nameOf, checkpointOf: (reader) => reader, counterOf: () => counter, counter }
}

/** A window that ends now, and an answer from the tables. */
export const counts: Endpoint<Counts, Counts & { fromMs: number; toMs: number }> = {
  operationId: 'getCounts',
  path: '/api/counts',
  tags: ['Test'],
  summary: 'Counts of a window that ends now',
  input: z.object({
    days: integer({ min: 1, max: 30 }).default(1),
    metric: oneOf(['online', 'lobbies']).default('online'),
    filter: text({ example: 'x' }).optional()
  }),
  resolve: (input, { nowMs }) => {
    const minute = Math.floor(nowMs / 60_000) * 60_000
    return { ...input, fromMs: minute - input.days * 86_400_000, toMs: minute + 60_000 }
  },
  reads: ({ fromMs, toMs }) => [{ projection: 'network-count', fromMs, toMs }],
  headers: () => ({ 'X-Resolution-Seconds': '0' }),
  answer: async (resolved, { tables, signal }) => ({ body: await tables.json('SELECT counts', resolved, { signal }) }),
  response: z.array(z.object({ online: z.int() })).meta({ description: 'Counts, oldest first.' }),
  responseHeaders: { 'X-Resolution-Seconds': 'Width of a bucket.' }
}

/** A path parameter with any text. */
export const game: Endpoint<{ game: string }, { game: string }> = {
  operationId: 'getGame',
  path: '/api/game/:game',
  tags: ['Test'],
  summary: 'A game by name',
  input: z.object({ game: text({ example: 'Halo 3' }) }),
  resolve: (input) => input,
  reads: () => [{ projection: 'title' }],
  answer: async (resolved) => ({ body: resolved }),
  response: z.object({ game: z.string() }).meta({ description: 'The game.' }),
  refuses: ['game_unknown']
}

/** A deprecated path with a title id. */
export const oldTitle: Endpoint<{ titleId: string }, { titleId: string }> = {
  operationId: 'getOldTitle',
  path: '/api/old/:titleId',
  tags: ['Test'],
  summary: 'A title, the old way',
  input: z.object({ titleId: text({ example: '4d5307e6' }) }),
  resolve: (input) => input,
  reads: ({ titleId }) => [{ projection: 'title', key: titleId }],
  answer: async ({ titleId }) => ({ body: { titleId }, headers: { 'X-Made': 'yes' } }),
  response: z.object({ titleId: z.string() }).meta({ description: 'The title.' }),
  deprecated: { since: new Date('2026-01-01T00:00:00Z'), successor: ({ titleId }) => `/api/title/${titleId}` }
}

export const NOW_MS = Date.UTC(2026, 2, 14, 20, 0, 30)

/** An API on test tables, with a stopped clock, closed when the test ends. */
export async function testApp(
  t: Teardown,
  given: Partial<ApiNeeds> & { addRoutes?: (app: FastifyInstance) => void } = {}
): Promise<{
  app: FastifyInstance
  tables: TestTables
  versions: DataVersions
  registry: Registry
  clock: { nowMs: number }
}> {
  const { addRoutes, ...needs } = given
  const tables = new TestTables()
  const versions = new DataVersions({ changes: tables.stored })
  await versions.refresh()
  const registry = new Registry()
  const clock = { nowMs: NOW_MS }
  const app = await buildApp(
    {
      endpoints: [counts, game, oldTitle],
      tables,
      positions: async () => [],
      dataVersions: versions,
      catalog: { newest: noTitles, held: noTitles, boards: async () => boardsOf([]) },
      publicUrl: 'http://127.0.0.1:8080',
      version: '0.0.0',
      registry,
      ready: async () => ({ ok: true }),
      now: () => clock.nowMs,
      ...needs
    },
    addRoutes
  )
  t.teardown(() => app.close())
  return { app, tables, versions, registry, clock }
}

/** Opens the app's port and sends raw bytes; resolves with all received bytes when the connection ends. */
export async function exchange(app: FastifyInstance, sent: string | Buffer): Promise<string> {
  if (!app.server.listening) await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1', () => socket.write(sent))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', reject)
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
  })
}

/** A span in whole minutes, or in whole hours. */
function widened({ fromMs, toMs }: ChangeRow, byMinute: boolean): { fromMs: number; toMs: number } {
  const width = byMinute ? 60_000 : 3_600_000
  return {
    fromMs: Math.floor(Math.max(fromMs, 0) / width) * width,
    toMs: Math.ceil(Math.max(Math.min(toMs, INSTANTS_END_MS), fromMs + 1) / width) * width
  }
}

const noTitles = async () => catalogOf([], [])
