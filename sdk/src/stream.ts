import type { OnlineUsers, StreamEvent } from './answers.js'
import { delay } from './call.js'
import { GamenetError } from './gamenet-error.js'
import { type Open, retryAfterOf } from './request.js'

/** A kind of recorded events. Undone imports arrive as events of the kind `retracted`. */
export type StreamKind = Exclude<StreamEvent['kind'], 'retracted'>

/** Filter and start of a stream. */
export type StreamParameters = {
  /** Default: all kinds that the filter fits. */
  readonly kinds?: readonly StreamKind[] | undefined
  readonly titleId?: string | undefined
  readonly game?: string | undefined
  readonly leaderboardId?: number | undefined
  readonly player?: string | undefined
  /** True: only records that beat a former one. */
  readonly contested?: boolean | undefined
  /** `start`, `now` (the default), or the `cursor` of an event of a stream with the same kinds and filter. */
  readonly after?: string | undefined
}

export type StreamOptions = {
  /** Ends the stream; its iteration rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

const PATH = '/api/stream'
const NDJSON = 'application/x-ndjson'
/** The service sends a keep-alive every 40 s; a connection that is silent for longer is dead. */
const SILENCE_MS_MAX = 60_000
/** Delay of a reconnection before the service has sent one. */
const RETRY_SECONDS = 1
const BACKOFF_MS_MAX = 30_000
/** Limit of a `Retry-After`: a proxy may send an hour, and the service be back in a minute. */
const RETRY_AFTER_MS_MAX = 60_000

/** Methods that stream events as they are recorded. */
export function streamMethods(open: Open) {
  return {
    /**
     * Events as they are recorded, in order, each once:
     * `for await (const event of client.stream({ kinds: ['change'] }))`. Reconnects and resumes until the loop is left
     * or the signal aborts; rejects when the service refuses the parameters.
     */
    stream: (parameters: StreamParameters = {}, options: StreamOptions = {}): AsyncGenerator<StreamEvent, void> =>
      eventsOf(open, parameters, options),
    /** The counts of all games, as in `getOnlineUsers`: once at the start, and again after each change. */
    liveCounts: (options: StreamOptions = {}): AsyncGenerator<OnlineUsers, void> => countsOf(open, options)
  }
}

async function* eventsOf(
  open: Open,
  { kinds, after, ...filter }: StreamParameters,
  options: StreamOptions
): AsyncGenerator<StreamEvent, void> {
  const parameters = { kinds: kinds?.join(','), ...filter }
  let cursor = after
  for await (const line of linesOf(() => ({ ...parameters, after: cursor }), open, options)) {
    const event = line as StreamEvent | { readonly cursor: string }
    cursor = event.cursor
    if ('kind' in event) yield event
  }
}

async function* countsOf(open: Open, options: StreamOptions): AsyncGenerator<OnlineUsers, void> {
  let games: OnlineUsers = {}
  for await (const line of linesOf(() => ({ kinds: 'live-counts' }), open, options)) {
    const { kind, data } = line as
      | { readonly kind: 'state'; readonly data: OnlineUsers }
      | { readonly kind: 'difference'; readonly data: Difference }
    games = kind === 'state' ? data : folded(games, data)
    yield games
  }
}

/** Has only the changed fields of a known game. */
type Difference = {
  readonly changed: Readonly<Record<string, Partial<OnlineUsers[string]>>>
  readonly gone: readonly string[]
}

function folded(before: OnlineUsers, { changed, gone }: Difference): OnlineUsers {
  const games = new Map<string, Partial<OnlineUsers[string]>>(Object.entries(before))
  for (const [name, fields] of Object.entries(changed)) games.set(name, { ...games.get(name), ...fields })
  for (const name of gone) games.delete(name)
  return Object.fromEntries(games) as OnlineUsers
}

/** Yields the lines of successive connections. */
async function* linesOf(
  parameters: () => Readonly<Record<string, string | number | boolean | undefined>>,
  open: Open,
  { signal }: StreamOptions
): AsyncGenerator<unknown, void> {
  let failures = 0
  let hasBegun = false
  let retrySeconds = RETRY_SECONDS
  for (;;) {
    signal?.throwIfAborted()
    const connection = new AbortController()
    const end = () => connection.abort(signal?.reason)
    signal?.addEventListener('abort', end, { once: true })
    let waitMs = 0
    try {
      const response = await open(PATH, parameters(), { Accept: NDJSON }, connection.signal)
      if (response.headers.get('Content-Type')?.startsWith(NDJSON) !== true) {
        throw new GamenetError(
          response.status,
          `${PATH} answered no events; check that baseUrl is a Gamenet Stats service.`
        )
      }
      const sentSeconds = retryAfterOf(response.headers)
      if (Number.isFinite(sentSeconds)) retrySeconds = Math.max(RETRY_SECONDS, sentSeconds)
      hasBegun = true
      for await (const line of linesIn(response, connection)) {
        // The signal may have aborted after the line was received.
        signal?.throwIfAborted()
        failures = 0
        yield line
      }
    } catch (error) {
      signal?.throwIfAborted()
      waitMs = waitAfter(error, hasBegun)
    } finally {
      signal?.removeEventListener('abort', end)
      connection.abort()
    }
    // The delays of the service are whole seconds; each client takes another instant around its own.
    const retryMs = 1000 * (retrySeconds - 0.5 + Math.random())
    await delay(Math.max(waitMs, Math.min(BACKOFF_MS_MAX, retryMs * 2 ** failures)), signal)
    failures += 1
  }
}

/**
 * Returns the minimum delay of the next attempt in milliseconds. Throws an error that a retry would not change. After
 * the first answer of the service, one without its error code is a proxy's, which has no service at the moment.
 */
function waitAfter(error: unknown, hasBegun: boolean): number {
  if (!(error instanceof GamenetError)) return 0
  const isOfProxy = hasBegun && error.code === undefined
  const isPassing =
    isOfProxy || error.status === 0 || error.status === 408 || error.status === 429 || error.status >= 500
  if (!isPassing) throw error
  return Math.min(RETRY_AFTER_MS_MAX, (error.retryAfterSeconds ?? 0) * 1000)
}

/**
 * Yields the parsed lines of a body; ends a connection that is silent for too long. Throws at a line of another kind.
 */
async function* linesIn(response: Response, connection: AbortController): AsyncGenerator<unknown, void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const silence = setTimeout(() => connection.abort(), SILENCE_MS_MAX)
    const chunk = await reader?.read().finally(() => clearTimeout(silence))
    if (chunk === undefined || chunk.done) return
    const lines = (rest + chunk.value).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line === '') continue
      const parsed = JSON.parse(line)
      // Without a cursor the next connection would begin elsewhere.
      if (typeof parsed?.cursor !== 'string' && parsed?.data === undefined)
        throw new SyntaxError(`${PATH} sent a line that is not an event`)
      yield parsed
    }
  }
}
