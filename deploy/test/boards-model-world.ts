import { buildApp, catalogCache, DataVersions, endpoints } from '@gamenet/api'
import { readSide, storeOver } from '@gamenet/projector'
import { Registry } from 'prom-client'
import type { Test } from 'tap'
import { openScrapedWorld, type ScrapedWorld, type WorldOptions } from './service/scraped-world.js'

/** Real pages, ingest, log, tables, projector and API, with one clock that a test moves. */
export type BoardWorld = ScrapedWorld & {
  readonly clock: { ms: number }
  /** Waits until all events of the log are readable, and the API is notified. */
  caughtUp(): Promise<void>
  /** One answer of the API with parsed JSON. */
  ask(url: string, body?: object): Promise<Expected>
}

export type Expected = {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: it is compared as a whole
  readonly body: any
  /** The address of `Link` with `rel="next"`. */
  readonly next: string | undefined
}

export async function openBoardWorld(
  t: Test,
  { clock, ...options }: Omit<WorldOptions, 'now'> & { readonly clock: { ms: number } }
): Promise<BoardWorld> {
  const world = await openScrapedWorld(t, { ...options, now: () => clock.ms })
  const tables = world.tables.readers
  const { positions, ...read } = readSide(storeOver(world.tables.control))
  const dataVersions = new DataVersions(read)
  const app = await buildApp({
    endpoints,
    tables,
    positions,
    dataVersions,
    catalog: catalogCache({ tables, versionOf: (dependency) => dataVersions.versionOf(dependency) }),
    publicUrl: 'http://127.0.0.1',
    version: 'test',
    registry: new Registry(),
    ready: async () => ({ ok: true }),
    now: () => clock.ms
  })
  t.teardown(() => app.close())
  return {
    ...world,
    clock,
    async caughtUp() {
      await world.projector.caughtUp()
      await dataVersions.refresh()
    },
    async ask(url, body) {
      const { statusCode, headers, payload } = await app.inject(
        body === undefined ? { url } : { url, method: 'POST', payload: body }
      )
      const next = /<([^>]+)>; rel="next"/.exec(String(headers.link ?? ''))?.[1]?.replace(/^https?:\/\/[^/]+/, '')
      return { status: statusCode, body: JSON.parse(payload), next }
    }
  }
}
