import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { addAssets } from './asset.js'
import { sdkPath } from './guides.js'

/** The folder of the example page, the auth service that the page may connect to, and the version of the client. */
export type Example = { readonly folder: URL; readonly authUrl?: string | undefined; readonly version: string }

/** Adds the page of `sdk/example` at `/example/`. Rejects when a file is missing. */
export async function addExample(app: FastifyInstance, { folder, authUrl, version }: Example): Promise<void> {
  const page = await readFile(new URL('index.html', folder), 'utf8')
  const assets = [
    { path: '/example/', content: page.replace('{sdk}', sdkPath(version)) },
    ...['example.css', 'example.js'].map((name) => ({ path: `/example/${name}`, content: new URL(name, folder) }))
  ]
  await addAssets(app, assets, {
    'Cache-Control': 'no-cache',
    'Content-Security-Policy': policyOf(authUrl),
    'Referrer-Policy': 'no-referrer'
  })
}

/** The page loads and shows only its own files, connects to this service and the auth service, and cannot be framed. */
function policyOf(authUrl: string | undefined): string {
  const connect = authUrl === undefined ? "'self'" : `'self' ${new URL(authUrl).origin}`
  return (
    `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src ${connect}; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  )
}
