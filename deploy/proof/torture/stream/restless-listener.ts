import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { chance, wholeChance } from '../world.js'
import type { Identities } from './identities.js'

/** The filter of a listener; undefined means all. */
export type Filter = {
  readonly kinds?: readonly string[]
  readonly titleId?: string
  readonly leaderboardId?: number
  readonly player?: string
}

type Place = { readonly cursor: string; readonly length: number }

/**
 * Maximum duration of a connection, from the start of the answer, so that connections to a busy service receive events; a
 * share of {@link EARLY} is counted from the request.
 */
const CONNECTED_MS_MAX = 1000
const EARLY = 0.1
/** Pause while the service is down: with a shorter one, a thousand listeners slow its start. */
const AGAIN_MS = 2000
/** Share of reconnections from an earlier cursor, with the journal truncated there; on average half of all events are read twice. */
const BACK = 0.03
const PLACES_MAX = 8
const POLL_SECONDS = 1
/** For the final polls: longer than a process needs to adopt the last swap or rollback. */
const LAST_POLL_SECONDS = 5
/** Errors of requests while the service is down. */
const DOWN = /ECONNREFUSED|"error"/
const WAYS = ['sse', 'last-event-id', 'ndjson', 'poll'] as const
type Way = (typeof WAYS)[number]

/** When a connection is cut: after `ms`, from the request if `isEarly`. */
type Cut = { readonly ms: number; readonly isEarly: boolean }

const Polled = z.object({
  events: z.array(z.looseObject({ cursor: z.string(), kind: z.string() })),
  cursor: z.string()
})

/**
 * A client of the stream that is disconnected at random instants and resumes, from its cursor or an earlier one, by a random
 * protocol. Its journal has the identities of the events that it received. It does not wait for the `retry:` of the service,
 * so that a round takes minutes.
 */
export class RestlessListener {
  readonly filter: Filter
  journal: number[] = []
  /**
   * Copies of the journal before each return to an earlier cursor: an event that was missed live may be read from the tables
   * later.
   */
  readonly abandoned: (readonly number[])[] = []
  /** Connections that ended after their answer had begun, by either side. */
  disconnections = 0
  /** Longest duration of a final poll. */
  slowestPollMs = 0
  readonly #identities: Identities
  readonly #numbers: readonly number[]
  #cursor = 'start'
  #places: Place[] = []
  #connections = 0

  constructor(filter: Filter, identities: Identities, ...numbers: number[]) {
    this.filter = filter
    this.#identities = identities
    this.#numbers = numbers
  }

  /** Follows the stream at random ports until `disconnections` is reached. Throws if the service refuses. */
  async run(ports: readonly number[], disconnections: number): Promise<void> {
    while (this.disconnections < disconnections) {
      const draw = (number: number): number => chance(...this.#numbers, this.#connections, number)
      this.#connections += 1
      if (draw(1) < BACK) this.#goBack(draw(2))
      const port = ports[Math.floor(draw(3) * ports.length)] ?? 0
      const way = WAYS[Math.floor(draw(4) * WAYS.length)] ?? 'sse'
      const cut = { ms: draw(5) * CONNECTED_MS_MAX, isEarly: draw(7) < EARLY }
      const unanswered = await this.#connect(port, way, cut)
      if (unanswered === undefined) this.disconnections += 1
      else if (DOWN.test(unanswered)) await pause(AGAIN_MS * (0.5 + draw(6)))
    }
  }

  /** Reads all remaining events. */
  async finish(port: number): Promise<void> {
    for (;;) {
      const before = this.#cursor
      const begunMs = performance.now()
      const refused = await this.#connect(port, 'poll', undefined, LAST_POLL_SECONDS)
      const tookMs = Math.round(performance.now() - begunMs)
      this.slowestPollMs = Math.max(this.slowestPollMs, tookMs)
      if (refused !== undefined) throw new Error(`A final poll at port ${port} failed after ${tookMs} ms: ${refused}`)
      if (this.#cursor === before) return
    }
  }

  #goBack(share: number): void {
    const place = this.#places[Math.floor(share * this.#places.length)]
    if (place === undefined) return
    this.#cursor = place.cursor
    this.abandoned.push(this.journal)
    this.journal = this.journal.slice(0, place.length)
    this.#places = this.#places.filter(({ length }) => length <= place.length)
  }

  /** Reads until the connection ends; returns the reason if there was no answer. */
  async #connect(port: number, way: Way, cut: Cut | undefined, seconds = POLL_SECONDS): Promise<string | undefined> {
    const query = new URLSearchParams()
    const { kinds, titleId, leaderboardId, player } = this.filter
    for (const [name, value] of Object.entries({ kinds: kinds?.join(','), titleId, leaderboardId, player })) {
      if (value !== undefined) query.set(name, String(value))
    }
    query.set('after', way === 'last-event-id' ? 'start' : this.#cursor)
    if (way === 'poll') query.set('wait', String(seconds))
    const headers: Record<string, string> = {}
    if (way === 'ndjson') headers.accept = 'application/x-ndjson'
    if (way === 'last-event-id' && this.#cursor !== 'start') headers['last-event-id'] = this.#cursor
    const sent = request({ host: '127.0.0.1', port, path: `/api/stream?${query}`, headers, agent: false })
    let timeout: NodeJS.Timeout | undefined
    const begin = (): void => {
      if (cut !== undefined) timeout = setTimeout(() => sent.destroy(), cut.ms)
    }
    if (cut?.isEarly === true) begin()
    else sent.once('response', begin)
    sent.end()
    sent.on('error', () => undefined)
    try {
      const answer = await once(sent, 'response').then(([answer]) => answer as IncomingMessage, String)
      if (typeof answer === 'string') return answer
      if (answer.statusCode === 503) return await textOf(answer)
      if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${await textOf(answer)}`)
      await this.#read(answer, way)
      return undefined
    } finally {
      clearTimeout(timeout)
      sent.destroy()
    }
  }

  async #read(answer: IncomingMessage, way: Way): Promise<void> {
    const text = await textOf(answer)
    if (way === 'ndjson') for (const line of complete(text, '\n')) this.#takeLine(line)
    else if (way !== 'poll') for (const frame of complete(text, '\n\n')) this.#takeFrame(frame)
    if (way !== 'poll' || !answer.complete) return
    const { events, cursor } = Polled.parse(JSON.parse(text))
    for (const event of events) this.#journalize(event.cursor, JSON.stringify({ ...event, cursor: undefined }))
    this.#cursor = cursor
  }

  #takeFrame(frame: string): void {
    const cursor = /^id: (.*)$/m.exec(frame)?.[1]
    if (cursor !== undefined) this.#journalize(cursor, /^data: (.*)$/m.exec(frame)?.[1])
  }

  #takeLine(line: string): void {
    const [, cursor, rest] = /^\{"cursor":"([^"]*)"(?:,(.*))?\}$/.exec(line) ?? []
    if (cursor !== undefined) this.#journalize(cursor, rest === undefined ? undefined : `{${rest}}`)
  }

  #journalize(cursor: string, event: string | undefined): void {
    if (event !== undefined) this.journal.push(this.#identities.of(event))
    this.#cursor = cursor
    const place = { cursor, length: this.journal.length }
    if (this.#places.length < PLACES_MAX) this.#places.push(place)
    else if (chance(...this.#numbers, this.journal.length, 6) < 0.05) {
      this.#places[wholeChance(PLACES_MAX, ...this.#numbers, this.journal.length, 7)] = place
    }
  }
}

/** Returns the parts of a text that end with `end`: an interrupted part is sent again. */
function complete(text: string, end: string): string[] {
  return text.split(end).slice(0, -1)
}

/** Returns the text received before the connection ended. */
async function textOf(answer: IncomingMessage): Promise<string> {
  let text = ''
  answer.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  answer.on('error', () => undefined)
  if (!answer.closed) await once(answer, 'close').catch(() => undefined)
  return text
}
