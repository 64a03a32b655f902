import { buildApp, catalogCache, DataVersions, endpoints } from '@gamenet/api'
import type { ClickHouse, Postgres } from '@gamenet/engines'
import { readSide, storeOver } from '@gamenet/projector'
import { Registry } from 'prom-client'
import { Client } from 'undici'

/** The public API over HTTP. */
export type ServedApi = {
  /** Returns the body and the `Link` header of a GET; throws unless the status is 200. */
  get(path: string): Promise<{ readonly text: string; readonly link: string }>
  /** Reads the data versions again after the tables have changed. */
  refresh(): Promise<void>
  close(): Promise<void>
}

/** Serves the public API, wired as in the service, on tables that a measurement has filled. */
export async function serveTables({ readers, control }: ClickHouse, writes?: Postgres): Promise<ServedApi> {
  const { changes, serving, positions } = readSide(storeOver(control))
  const dataVersions = new DataVersions({ changes, serving, onFailure: () => undefined })
  await dataVersions.refresh()
  const catalog = catalogCache({
    tables: readers,
    versionOf: (dependency) => dataVersions.versionOf(dependency)
  })
  const app = await buildApp({
    endpoints,
    tables: readers,
    positions,
    ...(writes === undefined ? {} : { writes }),
    dataVersions,
    catalog,
    publicUrl: 'http://127.0.0.1',
    version: '0.0.0',
    registry: new Registry(),
    ready: async () => ({ ok: true })
  })
  const client = new Client(await app.listen({ host: '127.0.0.1', port: 0 }))
  return {
    async get(path) {
      const { statusCode, headers, body } = await client.request({ method: 'GET', path })
      const text = await body.text()
      if (statusCode !== 200) throw new Error(`${path}: ${statusCode} ${text}`)
      return { text, link: String(headers.link ?? '') }
    },
    refresh: () => dataVersions.refresh(),
    async close() {
      await client.close()
      await dataVersions.stop()
      await app.close()
    }
  }
}
