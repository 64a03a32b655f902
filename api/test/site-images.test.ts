import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { type Test, test } from 'tap'
import { catalogOf } from '../src/queries/catalog.js'
import { imageKey } from '../src/site/components/image-path.js'
import { addImages } from '../src/site/images/images.js'

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64'
)
const BYTES_MAX = 256 * 1024

async function serve(t: Test, listener: RequestListener): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    listener(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

test('pictures come once, from the network or public hosts, within limits; else a drawn letter', async (t) => {
  const stranger = await serve(t, (_request, response) => response.setHeader('content-type', 'image/png').end(PNG))
  const upstream = await serve(t, ({ url = '' }, response) => {
    const send = (type: string, body: Buffer | string) => response.writeHead(200, { 'content-type': type }).end(body)
    const to = (location: string) => response.writeHead(302, { location }).end()
    if (url === '/good.png' || url === '/moved.png') return send('image/png; charset=x', PNG)
    if (url === '/icon.svg') return send('image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg"/>')
    if (url === '/most.png') return send('image/png', Buffer.alloc(BYTES_MAX))
    if (url === '/large.png') return send('image/png', Buffer.alloc(BYTES_MAX + 1))
    if (url === '/page.png') return send('text/html', '<p>')
    if (url === '/near.png') return to('/moved.png')
    if (url === '/away.png') return to(`${stranger.url}/x.png`)
    return url === '/round.png' ? to(url) : response.writeHead(404).end()
  })
  const names = [
    'good.png',
    'icon.svg',
    'most.png',
    'near.png',
    'large.png',
    'page.png',
    'away.png',
    'round.png',
    'none.png'
  ]
  const urls = [...names.map((name) => `${upstream.url}/${name}`), `${stranger.url}/x.png`, 'http://localhost:1/x.png']
  const facts = urls.flatMap((value, index) => {
    const titleId = `4d5300${(index + 16).toString(16)}`
    return [
      { titleId, field: 'name' as const, value: `<Game ${index}` },
      { titleId, field: 'image' as const, value }
    ]
  })
  const catalog = catalogOf(facts, [])
  const app = Fastify()
  t.teardown(() => app.close())
  addImages(app, { titles: async () => catalog, upstream: upstream.url })
  const get = (url: string, headers = {}) => app.inject({ url: `/img/${imageKey(url)}`, headers })
  const isDrawn: Record<string, boolean> = {}
  for (const url of urls) {
    const { statusCode, headers, body } = await get(url)
    t.equal(statusCode, 200, url)
    t.match(headers['content-security-policy'], /^sandbox; default-src 'none'/)
    isDrawn[url.replace(upstream.url, '')] = body.includes('>G</text>')
  }
  const good = ['/good.png', '/icon.svg', '/most.png', '/near.png']
  t.same(
    Object.keys(isDrawn).filter((url) => isDrawn[url] === false),
    good
  )
  t.same(stranger.asked, [], 'no private address is asked, not by a redirect either')
  const before = upstream.asked.length
  const { headers } = await get(urls[0] ?? '')
  t.equal((await get(urls[0] ?? '', { 'if-none-match': headers.etag })).statusCode, 304)
  t.equal(upstream.asked.length, before, 'it is fetched once')
  t.equal((await get('http://example.org/other.png')).statusCode, 404, 'only pictures of games are fetched')
})
