import { Refusal } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'
import type { Boards } from '../queries/board-descriptions.js'
import type { Catalog } from '../queries/catalog.js'
import { shown } from '../request/parameters.js'
import { readQuery } from '../request/query-string.js'
import { boardPath, gamePath } from './components/text.js'
import { embedPath } from './embed-path.js'
import { SITE_NAME } from './values/page.js'

const SITEMAP_MAX = 50_000
const PAGES = ['/', '/games', '/records', '/changes', '/achievements', '/compare', '/status', '/data', '/docs']
/** Every arrangement of a page is another address; crawlers need one of each. */
const ROBOTS = [
  'User-agent: *',
  ...['asOf', 'knownAt', 'with', 'compare', 'overlay', 'sort', 'dir', 'page', 'range', 'from', 'q'].map(
    (name) => `Disallow: /*?*${name}=`
  ),
  ...['/api/', '/search', '/users/', '/me', '/embed/'].map((path) => `Disallow: ${path}`)
]
const EMBED = { width: 600, height: 320 } as const

export type FilesNeeds = {
  readonly publicUrl: string
  readonly titles: () => Promise<Catalog>
  readonly boards: () => Promise<Boards>
}

/** Adds what crawlers and other programs ask a site for: robots, sitemap, manifest, oEmbed. */
export function addFiles(app: FastifyInstance, { publicUrl, titles, boards }: FilesNeeds): void {
  const robots = `${ROBOTS.join('\n')}\nSitemap: ${publicUrl}/sitemap.xml\n`
  app.get('/robots.txt', (_request, reply) => reply.type('text/plain; charset=utf-8').send(robots))
  app.get('/manifest.webmanifest', (_request, reply) =>
    reply.type('application/manifest+json').send(JSON.stringify(manifest))
  )
  app.get('/sitemap.xml', async (_request, reply) => {
    const [games, described] = await Promise.all([titles(), boards()])
    const paths = games.described().flatMap(({ titleId, shownName }) => {
      const title = { titleId, name: shownName }
      const listed = described.all().filter((board) => board.titleId === titleId && board.listed)
      return [gamePath(title), ...listed.map(({ leaderboardId }) => boardPath(title, leaderboardId))]
    })
    const urls = [...PAGES, ...paths].slice(0, SITEMAP_MAX).map((path) => `<url><loc>${publicUrl}${path}</loc></url>`)
    const body = `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
${urls.join('\n')}
</urlset>
`
    return reply.type('application/xml').header('Cache-Control', 'public, max-age=3600').send(body)
  })
  app.get('/oembed', async (request, reply) => {
    const { url = '', maxwidth, maxheight } = readQuery(request.raw.url ?? '')
    const path = embedPath(String(url))
    if (path === undefined) throw new Refusal('path_unknown', [shown(String(url))])
    const width = Math.min(EMBED.width, Number(maxwidth) || EMBED.width)
    const height = Math.min(EMBED.height, Number(maxheight) || EMBED.height)
    return reply.header('Cache-Control', 'public, max-age=3600').send({
      ...{ version: '1.0', type: 'rich', provider_name: SITE_NAME, provider_url: publicUrl, width, height },
      html:
        `<iframe src="${publicUrl}${path}" width="${width}" height="${height}" frameborder="0" ` +
        `title="${SITE_NAME}"></iframe>`
    })
  })
}

const manifest = {
  name: SITE_NAME,
  short_name: 'Gamenet',
  start_url: '/',
  display: 'standalone',
  background_color: '#0f141b',
  theme_color: '#1668c7',
  icons: [{ src: '/icon.svg', sizes: 'any', type: 'image/svg+xml' }]
}
