import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { type Asset, assetOf, sendAsset } from './asset.js'

/** Where the example page's files are, and which auth service it may ask. */
export type Example = { readonly folder: URL; readonly authUrl?: string | undefined }

const FILES = [
  ['/example/', 'index.html', 'text/html; charset=utf-8'],
  ['/example/example.css', 'example.css', 'text/css; charset=utf-8'],
  ['/example/example.js', 'example.js', 'text/javascript; charset=utf-8']
] as const

/** The page of `sdk/example` at `/example/`. Rejects when one of its files is missing. */
export async function addExample(app: FastifyInstance, { folder, authUrl }: Example): Promise<void> {
  const headers = {
    'Cache-Control': 'no-cache',
    'Content-Security-Policy': policyOf(authUrl),
    'Referrer-Policy': 'no-referrer'
  }
  for (const [path, name, type] of FILES) {
    const asset: Asset = await assetOf(type, await readFile(new URL(name, folder)))
    app.get(path, async (request, reply) => sendAsset(asset, headers, request, reply))
  }
}

/** The page runs and shows what stands here, asks here and at the auth service, and nobody can frame it. */
function policyOf(authUrl: string | undefined): string {
  const connect = authUrl === undefined ? "'self'" : `'self' ${new URL(authUrl).origin}`
  return (
    `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src ${connect}; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
  )
}
