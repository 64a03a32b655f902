import { buildApp, catalogCache, DataVersions, endpoints } from '@gamenet/api'
import type { ClickHouse } from '@gamenet/engines'
import { readSide, storeOver } from '@gamenet/projector'
import { Registry } from 'prom-client'
import { Client } from 'undici'

type Parameters = Readonly<Record<string, string | number>>

/** The public API over HTTP, and bare SQL on its tables. */
export type ServedApi = {
  /** Returns the body and the `Link` header of a GET, and its time in ms; throws unless the status is 200. */
  get(path: string): Promise<{ readonly text: string; readonly link: string; readonly ms: number }>
  /** Returns the rows of a statement as JSON, and its time in ms. */
  sql(statement: string, parameters: Parameters): Promise<{ readonly text: string; readonly ms: number }>
  /** Reads the data versions again after the tables have changed. */
  refresh(): Promise<void>
  close(): Promise<void>
}

/** Serves the public API, wired as in the service, on tables that a measurement has filled. */
export async function serveTables({ readers, control }: ClickHouse): Promise<ServedApi> {
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
      const begun = performance.now()
      const { statusCode, headers, body } = await client.request({ method: 'GET', path })
      const text = await body.text()
      if (statusCode !== 200) throw new Error(`${path}: ${statusCode} ${text}`)
      return { text, link: String(headers.link ?? ''), ms: performance.now() - begun }
    },
    async sql(statement, parameters) {
      const begun = performance.now()
      const text = new TextDecoder().decode(await readers.json(statement, parameters))
      return { text, ms: performance.now() - begun }
    },
    refresh: () => dataVersions.refresh(),
    async close() {
      await client.close()
      await dataVersions.stop()
      await app.close()
    }
  }
}

type Answer = { readonly text: string }

/** Throws unless the rows of an answer have the values of bare SQL in these columns. */
export function requireSame(
  rowsOf: (text: string) => readonly object[],
  api: Answer,
  sql: Answer,
  columns: string[]
): void {
  const shown = (rows: readonly object[]) =>
    JSON.stringify(rows.map((row) => columns.map((column) => String(row[column as keyof typeof row]))))
  const [answered, bare] = [shown(rowsOf(api.text)), shown(JSON.parse(sql.text))]
  if (answered !== bare)
    throw new Error(`the API answers ${answered.slice(0, 200)} where bare SQL gives ${bare.slice(0, 200)}`)
}
