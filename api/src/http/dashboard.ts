import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Coding, etagOf, namedTag } from '../answers/etag.js'
import { codingFor } from './request/accept-encoding.js'

/**
 * The page loads nothing from elsewhere but the pictures of games, which stand where the network says; no inline script
 * or style runs, and nobody can frame it.
 */
const PAGE_POLICY =
  "default-src 'self'; img-src 'self' https: http:; object-src 'none'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'"

const TYPES = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml'
} as const

/** The page's own files, in `api/dashboard`. */
const OWN = [
  'dashboard.css',
  'dashboard.js',
  'ask.js',
  'boards.js',
  'chart.js',
  'format.js',
  'history.js',
  'matches.js',
  'nodes.js',
  'part.js',
  'players.js',
  'poll.js',
  'series.js',
  'summary.js',
  'times.js',
  'titles.js',
  'view.js',
  'icon.svg'
] as const
/** Seen from `api/dist/src/http`. */
const OWN_FOLDER = new URL('../../../dashboard/', import.meta.url)
const BROTLI_QUALITY = 9

/**
 * The dashboard: a page at `/`, its files below `/dashboard/`. They are read once, here, and answered from memory.
 * Rejects when one of them is missing.
 */
export async function addDashboard(app: FastifyInstance): Promise<void> {
  const require = createRequire(import.meta.url)
  const files: readonly [path: string, file: URL | string][] = [
    ['/', new URL('index.html', OWN_FOLDER)],
    ...OWN.map((name): [string, URL] => [`/dashboard/${name}`, new URL(name, OWN_FOLDER)]),
    ['/dashboard/uplot.js', require.resolve('uplot/dist/uPlot.esm.js')],
    ['/dashboard/uplot.css', require.resolve('uplot/dist/uPlot.min.css')]
  ]
  const assets = await Promise.all(files.map(async ([path, file]) => ({ path, asset: await readAsset(file) })))
  for (const { path, asset } of assets) {
    app.get(path, async (request, reply) => send(asset, request, reply))
  }
}

type Asset = {
  readonly type: string
  readonly identity: string
  readonly bodies: Readonly<Record<Coding, Buffer>>
}

async function readAsset(file: URL | string): Promise<Asset> {
  const body = await readFile(file)
  const ending = String(file).split('.').at(-1) ?? ''
  if (!isKnownEnding(ending))
    throw new Error(`${file} ends in .${ending}; expected one of ${Object.keys(TYPES).join(', ')}`)
  const [packed, gzipped] = await Promise.all([
    promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
    promisify(gzip)(body)
  ])
  return {
    type: TYPES[ending],
    identity: createHash('sha256').update(body).digest('base64url').slice(0, 27),
    bodies: { identity: body, gzip: gzipped, br: packed }
  }
}

function isKnownEnding(ending: string): ending is keyof typeof TYPES {
  return Object.hasOwn(TYPES, ending)
}

function send({ type, identity, bodies }: Asset, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const header = request.headers['accept-encoding']
  const coding = codingFor(Array.isArray(header) ? header.join(', ') : header)
  reply.headers({
    'Content-Type': type,
    'Cache-Control': 'no-cache',
    'Content-Security-Policy': PAGE_POLICY,
    'Referrer-Policy': 'no-referrer',
    Vary: 'Accept-Encoding'
  })
  const { 'if-none-match': ifNoneMatch } = request.headers
  const tag = ifNoneMatch === undefined ? undefined : namedTag(ifNoneMatch, identity)
  if (tag !== undefined) return reply.code(304).header('ETag', tag).send()
  reply.header('ETag', etagOf(identity, coding))
  if (coding !== 'identity') reply.header('Content-Encoding', coding)
  return reply.send(bodies[coding])
}
