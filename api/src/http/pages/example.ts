import type { FastifyInstance } from 'fastify'
import { addAssets } from './asset.js'

/** The folder of the example page, and the auth service that the page may connect to. */
export type Example = { readonly folder: URL; readonly authUrl?: string | undefined }

/** Adds the page of `sdk/example` at `/example/`. Rejects when a file is missing. */
export async function addExample(app: FastifyInstance, { folder, authUrl }: Example): Promise<void> {
  const assets = [
    { path: '/example/', content: new URL('index.html', folder) },
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
