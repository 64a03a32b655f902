import { readdir, readFile } from 'node:fs/promises'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { test } from 'tap'
import { addDashboard } from '../src/http/pages/dashboard.js'
import { exchange, testApp } from './support/test-app.js'

const FOLDER = new URL('../../dashboard/', import.meta.url)

test('the page has a policy that permits no foreign code', async (t) => {
  const { app } = await testApp(t, { addRoutes: addDashboard })
  const page = await app.inject('/')
  t.equal(page.statusCode, 200)
  t.equal(page.headers['content-type'], 'text/html; charset=utf-8')
  t.equal(page.headers['cache-control'], 'no-cache')
  t.equal(page.headers['x-content-type-options'], 'nosniff')
  t.match(page.headers['x-request-id'], /\S/)
  t.match(page.headers.etag, /^"[\w-]{27}"$/)
  const policy = String(page.headers['content-security-policy'])
  t.match(policy, "default-src 'self';")
  t.match(policy, "img-src 'self' https: http:;")
  t.match(policy, "frame-ancestors 'none'")
  t.notMatch(policy, /unsafe|data:|\*/)
  t.notMatch(page.body, /<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=|<style/i, 'nothing inline')
  t.notMatch(page.body, /(?:src|href)="(?:\w+:)?\/\//, 'nothing from elsewhere')
})

test('a current copy is confirmed, in every coding, without its body', async (t) => {
  const { app } = await testApp(t, { addRoutes: addDashboard })
  const plain = await app.inject('/dashboard/uplot.js')
  const tags = new Set<unknown>()
  for (const [coding, decode] of [
    ['br', brotliDecompressSync],
    ['gzip', gunzipSync],
    ['identity', (body: Buffer) => body]
  ] as const) {
    const answer = await app.inject({ url: '/dashboard/uplot.js', headers: { 'accept-encoding': coding } })
    t.equal(answer.headers['content-encoding'], coding === 'identity' ? undefined : coding)
    t.equal(answer.headers.vary, 'Accept-Encoding')
    t.same(decode(answer.rawPayload), plain.rawPayload)
    tags.add(answer.headers.etag)
    const again = await app.inject({
      url: '/dashboard/uplot.js',
      headers: { 'accept-encoding': coding, 'if-none-match': String(answer.headers.etag) }
    })
    t.equal(again.statusCode, 304)
    t.equal(again.body, '')
    t.equal(again.headers.etag, answer.headers.etag)
    t.match(again.headers['content-security-policy'], "default-src 'self'")
  }
  t.equal(tags.size, 3, 'other bytes have another tag')
  const changed = await app.inject({ url: '/dashboard/uplot.js', headers: { 'if-none-match': '"another"' } })
  t.equal(changed.statusCode, 200)
})

test('HEAD has the headers of GET, and other methods are refused', async (t) => {
  const { app } = await testApp(t, { addRoutes: addDashboard })
  for (const url of ['/', '/dashboard/dashboard.css']) {
    const got = await app.inject(url)
    const head = await app.inject({ method: 'HEAD', url })
    t.equal(head.statusCode, 200)
    t.equal(head.body, '')
    for (const name of ['etag', 'content-type', 'content-length', 'content-security-policy']) {
      t.equal(head.headers[name], got.headers[name], name)
    }
    const post = await app.inject({ method: 'POST', url })
    t.equal(post.statusCode, 405)
    t.equal(post.headers.allow, 'GET, HEAD, OPTIONS')
  }
})

test('only the files of the page are served, in any spelling of a path', async (t) => {
  const { app } = await testApp(t, { addRoutes: addDashboard })
  for (const path of [
    '/dashboard/',
    '/dashboard/nothing.js',
    '/dashboard/index.html',
    '/dashboard/../package.json',
    '/dashboard/..%2fpackage.json',
    '/dashboard/%2e%2e/package.json',
    '/dashboard/..%5cpackage.json',
    '/dashboard//etc/passwd',
    '/dashboard/dashboard.js%00',
    '/../../../../etc/passwd',
    '/dashboard/dashboard.js/..'
  ]) {
    const raw = await exchange(app, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    t.match(raw, /^HTTP\/1\.1 40[04] /, path)
    t.match(raw, /\r\n\r\n\{"error":"[^"].*"\}$/s, path)
  }
})

test('every file that the page or one of its modules names is served, and every file is named', async (t) => {
  const { app } = await testApp(t, { addRoutes: addDashboard })
  const page = (await app.inject('/')).body
  const named = new Set([...page.matchAll(/(?:href|src)="(dashboard\/[^"]+)"/g)].map(([, path]) => `/${path}`))
  // The set grows during the loop, because modules name further modules.
  for (const path of named) {
    const answer = await app.inject(path)
    t.equal(answer.statusCode, 200, path)
    if (!path.endsWith('.js')) continue
    t.equal(answer.headers['content-type'], 'text/javascript; charset=utf-8')
    for (const [, module] of answer.body.matchAll(/from '\.\/([\w.-]+)'/g)) named.add(`/dashboard/${module}`)
  }
  const files = (await readdir(FOLDER)).filter((name) => name !== 'index.html').map((name) => `/dashboard/${name}`)
  t.same([...named].sort(), [...files, '/dashboard/uplot.css', '/dashboard/uplot.js'].sort())
})

test('no module of the page writes HTML', async (t) => {
  for (const name of (await readdir(FOLDER)).filter((each) => each.endsWith('.js'))) {
    const source = await readFile(new URL(name, FOLDER), 'utf8')
    t.notMatch(source, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function/, name)
  }
})
