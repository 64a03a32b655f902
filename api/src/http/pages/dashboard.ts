import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { FastifyInstance } from 'fastify'
import { addAssets } from './asset.js'

/**
 * The page loads only its own files, and pictures of games from any host. It runs no inline script or style and cannot
 * be framed.
 */
const PAGE_POLICY =
  "default-src 'self'; img-src 'self' https: http:; object-src 'none'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'"

/** The page's own files, in `api/dashboard`. */
const OWN = [
  'dashboard.css',
  'dashboard.js',
  'ask.js',
  'boards.js',
  'chart.js',
  'format.js',
  'history.js',
  'live.js',
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
/** Relative to `api/dist/src/http/pages`. */
const OWN_FOLDER = new URL('../../../../dashboard/', import.meta.url)

/** Adds the dashboard: a page at `/`, its files below `/dashboard/`. Rejects when a file is missing. */
export async function addDashboard(app: FastifyInstance): Promise<void> {
  const require = createRequire(import.meta.url)
  const assets = [
    { path: '/', content: new URL('index.html', OWN_FOLDER) },
    ...OWN.map((name) => ({ path: `/dashboard/${name}`, content: new URL(name, OWN_FOLDER) })),
    { path: '/dashboard/uplot.js', content: pathToFileURL(require.resolve('uplot/dist/uPlot.esm.js')) },
    { path: '/dashboard/uplot.css', content: pathToFileURL(require.resolve('uplot/dist/uPlot.min.css')) }
  ]
  await addAssets(app, assets, {
    'Cache-Control': 'no-cache',
    'Content-Security-Policy': PAGE_POLICY,
    'Referrer-Policy': 'no-referrer'
  })
}
