import { abortedAfter, type OnlineUsers, Refusal } from '@gamenet/schemas'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Counter, Gauge, type Registry } from 'prom-client'
import { compress, isCompressible } from '../answers/compression.js'
import { atOneInstant } from '../http/one-instant.js'
import type { PipelineNeeds } from '../http/pipeline.js'
import { SlotsPerAddress } from '../http/slots-per-address.js'
import { COMMON_HEADERS, JSON_TYPE } from '../reply/headers.js'
import { codingOf } from '../request/accept-encoding.js'
import { KNOWN_AT, parseInput } from '../request/parameters.js'
import { readQuery, unknownNames } from '../request/query-string.js'
import { weightsOf } from '../request/weights.js'
import { onlineUsers } from '../routes/title-count.js'
import { type Channel, cursorFrame, type Format, frameOf, type Progress } from './channel.js'
import { Hub } from './hub.js'
import type { StreamEvent } from './kinds.js'
import { ENDINGS, type Ending, Listener, RETRY_MS_MIN } from './listener.js'
import { LiveCounts } from './live-counts.js'
import { afterOf, filterOf, StreamInput } from './request.js'

/** Limits of the stream. */
export type StreamLimits = {
  /** Concurrent connections, including long polls. */
  readonly streamsMax: number
  /** Of them from one address; 0: no limit. */
  readonly streamsPerAddress: number
  /** Lifetime of a stream, plus up to 20 %: clients move to new proxies and processes. */
  readonly streamLifetimeMs: number
  /** Interval of keep-alives on a quiet stream; proxies commonly close a connection after 60 s without data. */
  readonly streamKeepAliveMs: number
  /**
   * A client that reads nothing for this long is disconnected; after twice as long if the kernel took bytes at first.
   */
  readonly streamDrainMs: number
  /**
   * Newest offsets of each partition that are read for the first listener: reconnecting ones need no query for them.
   */
  readonly streamRecentOffsets: number
}

export const STREAM_LIMITS: StreamLimits = {
  streamsMax: 12_000,
  streamsPerAddress: 200,
  streamLifetimeMs: 3_600_000,
  streamKeepAliveMs: 40_000,
  streamDrainMs: 30_000,
  streamRecentOffsets: 5000
}

export const STREAM_PATH = '/api/stream'
/** Events per answer to a long poll. */
const POLLED_MAX = 500
/** Time of reading after which a long poll without a match answers with the cursor reached. */
const POLL_READS_MS_MAX = 5000
/** Keep-alives are spread over this many ticks, so that each is short. */
const TICKS = 40
/** Ticks without a connection after which new events are no longer read. */
const IDLE_TICKS = 50
const RETRY_SECONDS_MAX = 10
const COUNTS_MS_MAX = 10_000

type StreamNeeds = Pick<
  PipelineNeeds,
  | 'tables'
  | 'positions'
  | 'writes'
  | 'catalog'
  | 'versions'
  | 'logger'
  | 'now'
  | 'metrics'
  | 'clients'
  | 'takingKnownAt'
> & {
  readonly limits: StreamLimits
  /** The epoch of new events. */
  readonly epoch: number
  readonly registry: Registry
}

/** Adds `GET /api/stream`. Returns a function that drops the events in memory, for the erasure of a user. */
export function addStream(app: FastifyInstance, needs: StreamNeeds): () => void {
  const streams = new Streams(needs)
  app.server.on('connection', () => streams.accepted())
  app.get(STREAM_PATH, (request, reply) => streams.answer(request, reply))
  app.addHook('preClose', async () => streams.close())
  return () => streams.dropRecent()
}

/** How a client is answered: in which format, and the delay after which it reconnects. */
type Connection = { readonly format: Format; readonly retryMs: number }

class Streams {
  readonly #needs: StreamNeeds
  readonly #hub: Hub
  readonly #liveCounts: LiveCounts
  readonly #perAddress: SlotsPerAddress
  readonly #slots: readonly Set<Listener>[] = Array.from({ length: TICKS }, () => new Set())
  readonly #observe: ReturnType<PipelineNeeds['metrics']['durations']>
  readonly #ended: (ending: Ending) => void
  #open = 0
  #retry = 0
  #tickNumber = 0
  #idleTicks = 0
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(needs: StreamNeeds) {
    this.#needs = needs
    this.#perAddress = new SlotsPerAddress(needs.limits.streamsPerAddress, 'streams_per_address', RETRY_SECONDS_MAX)
    const onFailure = (error: unknown): void => {
      needs.logger.warn({ err: error }, 'new events cannot be read for streams; it is tried again')
    }
    const metrics = streamMetrics(needs.registry, () => this.#open)
    this.#ended = metrics.ended
    const { streamRecentOffsets: recentOffsets } = needs.limits
    this.#hub = new Hub({ ...needs, recentOffsets, onRead: metrics.read, onFailure })
    this.#liveCounts = new LiveCounts({
      versions: needs.versions,
      compute: () => this.#currentCounts(),
      channels: () => this.#hub.channels,
      onFailure
    })
    this.#observe = needs.metrics.durations(STREAM_PATH)
  }

  async answer(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const startedAt = performance.now()
    const { limits, catalog, versions } = this.#needs
    if (this.#open >= limits.streamsMax || this.#isClosed) {
      const retryAfterSeconds = 1 + Math.floor(Math.random() * RETRY_SECONDS_MAX)
      throw new Refusal('streams_full', [], { retryAfterSeconds })
    }
    const address = limits.streamsPerAddress === 0 ? undefined : this.#needs.clients.of(request.raw)
    const giveBack = this.#perAddress.take(address)
    this.#open += 1
    let channel: Channel | undefined
    let isOpen = true
    const leave = (): void => {
      if (!isOpen) return
      isOpen = false
      this.#open -= 1
      giveBack()
      if (channel !== undefined) this.#hub.leave(channel)
    }
    this.#startTicks()
    try {
      await this.#hub.share.turn('begin')
      const given = readQuery(request.raw.url ?? '')
      if (KNOWN_AT in given)
        throw new Refusal('known_at_unsupported', [STREAM_PATH, this.#needs.takingKnownAt.join(', ')])
      const unknown = unknownNames(given, KNOWN)
      const input = parseInput(StreamInput, given)
      const filter = await filterOf(input, { catalog: () => catalog.held(versions.serving) })
      const [after, name] = afterOf(input, request.headers['last-event-id'])
      channel = this.#hub.join(filter)
      const progress = await this.#hub.begin(channel, after, name)
      // All that come before the first look at the tables wait for it together.
      await this.#hub.share.turn('begin')
      if (input.wait !== undefined) {
        const answer = Buffer.from(await this.#poll(channel, progress, input.wait, reply))
        leave()
        reply.headers({ 'Content-Type': JSON_TYPE, 'Cache-Control': 'no-store', Vary: 'Accept-Encoding' })
        if (unknown !== undefined) reply.header('X-Unknown-Parameters', unknown)
        const coding = isCompressible(answer) ? codingOf(request.headers) : 'identity'
        if (coding === 'identity') return reply.send(answer)
        return reply.header('Content-Encoding', coding).send(await compress[coding](answer))
      }
      const format = formatOf(request)
      const retryMs = this.#nextRetryMs()
      const isStream = this.#sendHead(request, reply, { format, retryMs, unknown })
      this.#observe(request.raw.method ?? 'GET', 200, (performance.now() - startedAt) / 1000)
      if (isStream) this.#listen(reply, channel, { format, retryMs }, progress, leave)
      else leave()
      return reply
    } catch (error) {
      leave()
      // Its reads were aborted. EventSource reconnects after a broken connection, but not after an error status.
      if (this.#isClosed && !(error instanceof Refusal)) request.socket.destroy()
      if (request.socket.destroyed) return reply.hijack()
      throw error
    }
  }

  /** Called for each new connection. */
  accepted(): void {
    this.#hub.share.accepted()
  }

  /** Drops the events in memory. */
  dropRecent(): void {
    this.#hub.dropRecent()
  }

  /** Ends all streams; clients reconnect to another process, or when this one is back. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const slot of this.#slots) for (const listener of [...slot]) listener.end('stopped')
    this.#hub.close()
    this.#liveCounts.close()
  }

  /** Sends the head of the answer. The body ends with the connection, so that frames need no chunked encoding. */
  #sendHead(
    { id, raw }: FastifyRequest,
    reply: FastifyReply,
    { format, retryMs, unknown }: Connection & { readonly unknown: string | undefined }
  ): boolean {
    if (raw.socket.destroyed) return false
    if (reply.raw.socket === null) {
      throw new Refusal('request_invalid', ['A stream needs a connection of its own; wait for the answers before it'])
    }
    reply.hijack()
    reply.raw.removeHeader('Transfer-Encoding')
    reply.raw.writeHead(200, {
      ...COMMON_HEADERS,
      'X-Request-Id': id,
      'Content-Type': format === 'sse' ? 'text/event-stream; charset=utf-8' : 'application/x-ndjson; charset=utf-8',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
      Connection: 'close',
      // Instead of `retry:`, in seconds; clients add jitter.
      ...(format === 'ndjson' ? { 'Retry-After': String(Math.round(retryMs / 1000)) } : {}),
      ...(unknown === undefined ? {} : { 'X-Unknown-Parameters': unknown })
    })
    if (raw.method === 'HEAD') {
      reply.raw.end()
      return false
    }
    // Head and recent events leave in one write: a write is a sixth of the cost of a reconnection.
    raw.socket.cork()
    process.nextTick(() => raw.socket.uncork())
    reply.raw.flushHeaders()
    return true
  }

  #listen(
    reply: FastifyReply,
    channel: Channel,
    { format, retryMs }: Connection,
    progress: Progress,
    leave: () => void
  ): void {
    const { limits, now, logger } = this.#needs
    const slot = this.#slots[Math.floor(Math.random() * TICKS)] ?? new Set()
    const listener = new Listener({
      socket: reply.raw.socket as NonNullable<typeof reply.raw.socket>,
      hub: this.#hub,
      states: this.#liveCounts,
      channel,
      format,
      endsAtMs: now() + limits.streamLifetimeMs * (1 + Math.random() / 5),
      retryMs,
      drainMs: limits.streamDrainMs,
      onEnd: (ending) => {
        slot.delete(listener)
        leave()
        this.#ended(ending)
      },
      onFailure: (error) => logger.warn({ err: error }, 'a stream is ended, because its events cannot be read')
    })
    slot.add(listener)
    // The service may have started to stop meanwhile.
    if (this.#isClosed) listener.end('stopped')
    listener.follow(progress).catch((error: unknown) => listener.fail(error))
  }

  /**
   * Returns the delay after which the next client reconnects. Open streams have different ones, a millisecond apart:
   * after a restart 1,000 clients return per second, which leaves half of a core to other answers.
   */
  #nextRetryMs(): number {
    this.#retry = (this.#retry + 1) % this.#open
    return RETRY_MS_MIN + this.#retry
  }

  /** Returns the answer to a long poll, as soon as there is an event. */
  async #poll(channel: Channel, progress: Progress, waitSeconds: number, reply: FastifyReply): Promise<string> {
    const closed = new AbortController()
    const onClose = (): void => closed.abort()
    reply.raw.once('close', onClose)
    if (reply.request.socket.destroyed) onClose()
    const ended = abortedAfter(waitSeconds * 1000, closed.signal)
    const readUntilMs = performance.now() + POLL_READS_MS_MAX
    const events: string[] = []
    try {
      while (events.length === 0) {
        await this.#hub.share.turn('begin')
        const limit = progress.pageOf(POLLED_MAX)
        const recent = this.#hub.recent(channel, progress, limit)
        const behind = this.#hub.behind(channel, progress)
        if (recent.length > 0) {
          events.push(...polled(recent, progress))
        } else if (behind === undefined) {
          if (ended.aborted || this.#isClosed) break
          await this.#hub.advanced(ended)
        } else {
          const page = await this.#hub.read(behind, channel, progress, limit, closed.signal)
          events.push(...polled(page.events, progress))
          page.done()
          if (this.#isClosed || (ended.aborted && !page.isReadable)) break
          if (!page.isReadable) await this.#hub.advanced(ended)
          if (performance.now() > readUntilMs) break
        }
      }
    } finally {
      reply.raw.off('close', onClose)
    }
    return `{"events":[${events.join(',')}],"cursor":"${progress.cursor}"}`
  }

  async #currentCounts(): Promise<OnlineUsers> {
    const { versions, catalog, now } = this.#needs
    const resolving = { nowMs: now(), openListAgeMs: 0, catalog: () => catalog.held(versions.serving) }
    const resolved = await onlineUsers.resolve({}, resolving)
    const signal = AbortSignal.timeout(COUNTS_MS_MAX)
    const { body } = await atOneInstant(this.#needs, signal, (context) => onlineUsers.answer(resolved, context))
    return body as OnlineUsers
  }

  #startTicks(): void {
    this.#idleTicks = 0
    this.#timer ??= setInterval(() => this.#tick(), this.#needs.limits.streamKeepAliveMs / TICKS).unref()
  }

  /** Writes keep-alives with the cursor to a part of the listeners, and ends those whose lifetime is over. */
  #tick(): void {
    this.#tickNumber = (this.#tickNumber + 1) % TICKS
    const nowMs = this.#needs.now()
    const frames = new Map<string, Uint8Array>()
    for (const listener of [...(this.#slots[this.#tickNumber] ?? [])]) {
      if (nowMs >= listener.endsAtMs) {
        listener.end('lifetime')
        continue
      }
      const { channel, format } = listener
      if (!channel.live.has(listener)) {
        listener.comment()
        continue
      }
      if (channel.owes(listener)) continue
      const key = format + channel.fingerprint
      const frame = frames.get(key) ?? Buffer.from(cursorFrame(format, this.#hub.cursorOf(channel)))
      frames.set(key, frame)
      listener.write(frame)
    }
    if (this.#tickNumber === 0 && this.#open > 0) this.#hub.rest()
    this.#idleTicks = this.#open === 0 ? this.#idleTicks + 1 : 0
    if (this.#idleTicks < IDLE_TICKS) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#hub.rest()
    this.#liveCounts.rest()
  }
}

function polled(events: readonly StreamEvent[], progress: Progress): string[] {
  return events.map((event) => {
    progress.move(event.kind, event.partitionId, event.next)
    return frameOf('ndjson', event, progress.cursor).trimEnd()
  })
}

const KNOWN = new Set(Object.keys(StreamInput.shape))

function formatOf({ headers }: FastifyRequest): Format {
  const weights = weightsOf(headers.accept ?? '')
  const ndjson = weights.get('application/x-ndjson') ?? 0
  return ndjson > 0 && ndjson >= (weights.get('text/event-stream') ?? 0) ? 'ndjson' : 'sse'
}

/** Registers the metrics of streams; returns functions that count ends and reads. */
function streamMetrics(registry: Registry, open: () => number): { ended(ending: Ending): void; read(): void } {
  new Gauge({
    name: 'gamenet_streams',
    help: 'Open streams, long polls included.',
    registers: [registry],
    collect() {
      this.set(open())
    }
  })
  const endings = new Counter({
    name: 'gamenet_streams_ended_total',
    help:
      'Streams that ended: by the client, because it read too slowly, at the end of their lifetime, with the ' +
      'service, after a failure.',
    labelNames: ['ending'],
    registers: [registry]
  })
  for (const ending of ENDINGS) endings.inc({ ending }, 0)
  const reads = new Counter({
    name: 'gamenet_stream_reads_total',
    help: 'Reads of the tables for all streams together: looks for new events, and pages of history.',
    registers: [registry]
  })
  return { ended: (ending) => endings.inc({ ending }), read: () => reads.inc() }
}
