import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { instantOf } from '@gamenet/schemas'
import { type FastifyBaseLogger, type FastifyReply, type FastifyRequest, fastify, LogController } from 'fastify'
import { z } from 'zod'
import { FAULTS, type Fault, FaultBook, FaultOrder } from './faults.js'
import { gamePage, gamesPage, homePage, playersPage, refusalPage, titleImageName } from './pages.js'
import { titleImage } from './title-image.js'
import { createWorld, type World } from './world.js'

export type DemoNetworkOptions = {
  /** Default `127.0.0.1`. The network has no secrets, but anyone can order its faults. */
  readonly host?: string
  /** Default 0: a free port. */
  readonly port?: number
  readonly seed: number
  /** Milliseconds since 1970; default the machine's clock. */
  readonly now?: () => number
  /** Speed of the world relative to the clock; default 1. */
  readonly speed?: number
  /** Duration of a slow answer; default 10 s. */
  readonly slowMs?: number
  readonly logger?: FastifyBaseLogger
  /** The world to show; default: the one of the seed. */
  readonly world?: World
  /** Called after every answer with a page: its content and instant. */
  readonly onShown?: (shown: Shown) => void
}

/**
 * One answer of the network, reported before it is sent. Its page can be rendered again from the seed and `instant`:
 * see {@link World}.
 */
export type Shown = {
  readonly path: string
  /** The requested board; absent without one. */
  readonly leaderboardId?: number
  readonly instant: string
  readonly status: number
  readonly fault?: Fault
}

export type DemoNetwork = {
  /** `http://host:port`, no slash at the end. */
  readonly url: string
  readonly world: World
  /** The instant of the world that the pages show when the clock says `ms` (default: now). */
  instantShown(ms?: number): number
  /** Orders a fault, as `POST /_faults` does. */
  orderFault(order: FaultOrder): void
  close(): Promise<void>
}

/** Pages change at most this often, so that a repeated request gets 304. */
const STEP_MS = 5000
const PAGES_CACHED_MAX = 64
const BODY_BYTES_MAX = 64 * 1024
const SLOW_PIECES = 10

/**
 * Starts the demo network: a real HTTP server with the pages of a network that changes over time, and faults on
 * request.
 */
export async function startDemoNetwork(options: DemoNetworkOptions): Promise<DemoNetwork> {
  const { host = '127.0.0.1', port = 0, now = Date.now, speed = 1, slowMs = 10_000 } = options
  const world = options.world ?? createWorld(options.seed)
  const startedMs = now()
  const instantShown = (ms = now()) => Math.floor((startedMs + (ms - startedMs) * speed) / STEP_MS) * STEP_MS
  const faults = new FaultBook()
  const closing = new AbortController()
  const app = fastify({
    bodyLimit: BODY_BYTES_MAX,
    forceCloseConnections: true,
    logController: new LogController({ disableRequestLogging: true }),
    ...(options.logger === undefined ? {} : { loggerInstance: options.logger })
  })
  let url = ''
  const remembered = pageMemory()

  app.setNotFoundHandler((request, reply) => {
    void reply
      .code(404)
      .type(HTML)
      .send(refusalPage(`There is nothing at ${request.url}.`))
  })
  app.get('/_faults', () => faults.list())
  app.post('/_faults', (request, reply) => {
    const order = FaultOrder.safeParse(request.body)
    if (!order.success) return reply.code(400).send({ error: z.prettifyError(order.error) })
    faults.order(order.data)
    return reply.code(204).send()
  })
  app.get<{ Params: { image: string } }>('/img/:image', (request, reply) => {
    const title = world.titles.find((title) => titleImageName(title) === request.params.image)
    if (title === undefined) return reply.code(404).type(HTML).send(refusalPage('There is no such picture.'))
    return reply.type('image/svg+xml').header('cache-control', 'max-age=86400').send(titleImage(world.seed, title))
  })
  app.get('/*', async (request, reply) => {
    const ms = instantShown()
    const shown = remembered(request.url, ms, () => render(world, request, ms, url))
    if (shown === undefined) {
      return reply.code(404).type(HTML).send(refusalPage('There is no such page, title or leaderboard.'))
    }
    const path = pathOf(request)
    const fault = requestedFault(request) ?? faults.take(path)
    const status = fault === '500' ? 500 : isUnchanged(request, shown) ? 304 : 200
    options.onShown?.({
      path,
      ...requestedBoard(request),
      instant: instantOf(ms),
      status,
      ...(fault === undefined ? {} : { fault })
    })
    if (fault !== undefined) return sendFaulty(reply, fault, shown, { slowMs, signal: closing.signal })
    void reply.headers({
      etag: shown.etag,
      'last-modified': new Date(shown.modifiedMs).toUTCString(),
      'cache-control': 'no-cache'
    })
    return status === 304 ? reply.code(304).send() : reply.type(HTML).send(shown.bytes)
  })

  url = await app.listen({ host, port })
  return {
    url,
    world,
    instantShown,
    orderFault: (order) => faults.order(order),
    close: async () => {
      closing.abort()
      await app.close()
    }
  }
}

const HTML = 'text/html; charset=utf-8'

type Page = {
  readonly bytes: Buffer
  readonly etag: string
  /** The instant that it shows. */
  readonly ms: number
  /** The earliest known instant at which it looked the same. */
  readonly modifiedMs: number
}

/** Returns the page at an address and an instant; undefined if there is none. */
function render(world: World, request: FastifyRequest, ms: number, origin: string): string | undefined {
  const path = pathOf(request)
  if (path === '/') return homePage(world, ms, origin)
  if (path === '/games') return gamesPage(world, origin)
  if (path === '/players') return playersPage(world, ms)
  const [, segment] = /^\/games\/([^/]{1,64})$/.exec(path) ?? []
  if (segment === undefined) return undefined
  const id = segment.toLowerCase()
  const title = world.titles.find((title) => title.titleId === id || title.productCode.toLowerCase() === id)
  if (title === undefined) return undefined
  const { leaderboard } = request.query as { leaderboard?: string }
  if (leaderboard === undefined || leaderboard === '') return gamePage(world, title, ms, undefined)
  const board = world.boardsAt(title, ms).find((board) => String(board.leaderboardId) === leaderboard)
  return board === undefined ? undefined : gamePage(world, title, ms, board)
}

/** Caches the pages of the newest instant, so that requests at the same instant share one rendering. */
function pageMemory() {
  const pages = new Map<string, Page>()
  return (address: string, ms: number, make: () => string | undefined): Page | undefined => {
    const kept = pages.get(address)
    if (kept?.ms === ms) return kept
    const html = make()
    if (html === undefined) return undefined
    const bytes = Buffer.from(html)
    const etag = `"${createHash('sha1').update(bytes).digest('base64url')}"`
    const page = { bytes, etag, ms, modifiedMs: kept?.etag === etag ? kept.modifiedMs : ms }
    pages.delete(address)
    pages.set(address, page)
    const [oldest] = pages.keys()
    if (pages.size > PAGES_CACHED_MAX && oldest !== undefined) pages.delete(oldest)
    return page
  }
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? request.url
}

/** RFC 9110, 13.2.2: If-Modified-Since counts only where If-None-Match is absent. */
function isUnchanged(request: FastifyRequest, page: Page): boolean {
  const { 'if-none-match': noneMatch, 'if-modified-since': modifiedSince } = request.headers
  if (noneMatch !== undefined) {
    return noneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === page.etag || tag.trim() === '*')
  }
  return modifiedSince !== undefined && Date.parse(modifiedSince) >= page.modifiedMs
}

function requestedBoard(request: FastifyRequest): { readonly leaderboardId?: number } {
  const { leaderboard } = request.query as { leaderboard?: string }
  return leaderboard === undefined || leaderboard === '' ? {} : { leaderboardId: Number(leaderboard) }
}

function requestedFault(request: FastifyRequest): Fault | undefined {
  const { fault } = request.query as { fault?: string }
  return FAULTS.find((known) => known === fault)
}

async function sendFaulty(
  reply: FastifyReply,
  fault: Fault,
  { bytes }: Page,
  { slowMs, signal }: { readonly slowMs: number; readonly signal: AbortSignal }
): Promise<FastifyReply> {
  if (fault === '500') return reply.code(500).type(HTML).send(refusalPage('The network is out of order.'))
  if (fault === 'broken') return reply.type(HTML).send(cutInTag(bytes))
  const { raw } = reply.hijack()
  if (fault === 'hang') return reply
  if (fault === 'reset') {
    raw.socket?.resetAndDestroy()
    return reply
  }
  raw.writeHead(200, { 'content-type': HTML, 'content-length': bytes.length })
  if (fault === 'truncated') {
    raw.write(bytes.subarray(0, Math.floor(bytes.length / 2)), () => raw.destroy())
    return reply
  }
  const pieceBytes = Math.ceil(bytes.length / SLOW_PIECES)
  for (let start = 0; start < bytes.length && !raw.destroyed; start += pieceBytes) {
    raw.write(bytes.subarray(start, start + pieceBytes))
    const isOpen = await pause(slowMs / SLOW_PIECES, true, { signal }).catch(() => false)
    if (!isOpen) return reply
  }
  raw.end()
  return reply
}

/** Returns the first half of a page, extended into the next tag. */
function cutInTag(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.indexOf('<', Math.floor(bytes.length / 2)) + 2)
}
