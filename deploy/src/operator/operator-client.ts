import { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { errorCode, parseJson } from '@gamenet/schemas'
import { type Dispatcher, request } from 'undici'
import { z } from 'zod'
import { FailureError, UsageError } from '../config.js'
import type { OperatorPort } from '../data-directory/data-directory.js'
import { LINES, OCTETS, type Operation, type Operations, type RunContext } from '../operate/operation.js'
import { VERSION } from '../version.js'

/**
 * A process that is stopped, or hangs, accepts connections all the same: it is asked at times, and has to reply within
 * the limit.
 */
const SIGNS_OF_LIFE = { everyMs: 15_000, withinMs: 15_000 }

/**
 * The operations of a running service, over its operator port. They may take long, as long as the service shows signs
 * of life.
 */
export function operatorClient(port: OperatorPort, signs = SIGNS_OF_LIFE): Operations {
  return {
    run: async (operation, input, { onProgress = () => undefined, signal: cancelled } = {}) => {
      const silence = new AbortController()
      const ended = new AbortController()
      const signal = AbortSignal.any([silence.signal, ...(cancelled === undefined ? [] : [cancelled])])
      void watch(port.operatorUrl, signs, ended.signal).catch((reason: unknown) => silence.abort(reason))
      return await send(port, operation, input, { onProgress, signal }).finally(() => ended.abort())
    }
  }
}

async function send<Input, Progress, Result>(
  { operatorUrl, operatorToken }: OperatorPort,
  operation: Operation<Input, Progress, Result>,
  input: Input,
  { onProgress, signal }: RunContext<Progress>
): Promise<Result> {
  const { result, progress } = operation
  const notUnderstood = () =>
    new FailureError(
      `${operatorUrl} does not answer the ${operation.name} as the operator port of gamenet ${VERSION} does. If it ` +
        `is an operator port (OPERATOR_URL), its service was started with another version: restart it with this one, ` +
        `or use the command of its version.`
    )
  const understood = <Schema extends z.ZodType>(schema: Schema, text: string): z.infer<Schema> => {
    const parsed = schema.safeParse(parseJson(text))
    if (parsed.success) return parsed.data
    throw notUnderstood()
  }
  const { method, path, body } = requestOf(operation, input)
  const answer = await reach(operatorUrl, () =>
    request(operatorUrl + path, {
      method,
      headers: {
        ...(operatorToken === undefined ? {} : { authorization: `Bearer ${operatorToken}` }),
        ...(progress === undefined ? {} : { accept: LINES }),
        ...(body === null ? {} : { 'content-type': OCTETS })
      },
      body,
      signal,
      headersTimeout: 0,
      bodyTimeout: 0
    })
  )
  if (answer.headers['content-type'] === LINES)
    return await follow(operation, answer.body, understood, onProgress, signal)
  const text = await reach(operatorUrl, () => answer.body.text())
  if (answer.statusCode === 404) throw notUnderstood()
  if (answer.statusCode !== 200) throw refusalOf(answer.statusCode, text)
  return understood(result, text)
}

/** Asks for a sign of life at times, until `ended`. Rejects when there is none; the reply itself does not matter. */
async function watch(
  operatorUrl: string,
  { everyMs, withinMs }: typeof SIGNS_OF_LIFE,
  ended: AbortSignal
): Promise<void> {
  while (!ended.aborted) {
    await setTimeout(everyMs, undefined, { signal: ended, ref: false }).catch(() => undefined)
    const late = AbortSignal.timeout(withinMs)
    const asked = request(`${operatorUrl}/healthz`, { signal: AbortSignal.any([ended, late]) })
    await asked.then(({ body }) => body.dump()).catch(() => undefined)
    if (late.aborted && !ended.aborted)
      throw new FailureError(
        `The service at ${operatorUrl} gives no sign of life: it is stopped, or hangs. An operation may be completed ` +
          `when it goes on; see its log and its process (ps), then gamenet status.`
      )
  }
}

/** Returns method, path with query, and body for an input. */
function requestOf({ route, body }: Pick<Operation<never, never, never>, 'route' | 'body'>, input: unknown) {
  const [method, path = ''] = z.tuple([z.enum(['GET', 'POST']), z.string()]).parse(route.split(' '))
  const fields = new Map(Object.entries(Object(input)).filter(([, value]) => value !== undefined))
  const lookup = (name: string): unknown => {
    const value = fields.get(name)
    fields.delete(name)
    return value
  }
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(lookup(name))))
  if (body?.as === 'json') return { method, path: filled, body: JSON.stringify(Object.fromEntries(fields)) }
  const content = body === undefined ? null : (lookup(body.field) ?? null)
  const query = new URLSearchParams(
    [...fields].map(([name, value]): [string, string] => [
      name,
      typeof value === 'object' ? JSON.stringify(value) : String(value)
    ])
  )
  return { method, path: query.size === 0 ? filled : `${filled}?${query}`, body: bodyOf(content) }
}

function bodyOf(content: unknown): string | Readable | null {
  if (content === null || typeof content === 'string') return content
  return Readable.from(z.custom<AsyncIterable<Uint8Array>>().parse(content))
}

/** Reads the lines of an answer up to the result. */
async function follow<Input, Progress, Result>(
  { name, progress = z.never(), result }: Operation<Input, Progress, Result>,
  body: Dispatcher.ResponseData['body'],
  understood: <Schema extends z.ZodType>(schema: Schema, text: string) => z.infer<Schema>,
  onProgress: RunContext<Progress>['onProgress'],
  signal: AbortSignal | undefined
): Promise<Result> {
  const Line = z.union([
    z.object({ progress }),
    z.object({ report: result }),
    z.object({ error: z.string(), usage: z.boolean() })
  ])
  let last: { report: Result } | { error: string; usage: boolean } | undefined
  // Reads to the end of the answer: otherwise a connection that breaks after the result is an unhandled error.
  for await (const text of linesOf(body)) {
    const line = understood(Line, text)
    if ('progress' in line) onProgress(line.progress)
    else last = line
  }
  signal?.throwIfAborted()
  if (last === undefined)
    throw new FailureError(
      `The service ended the ${name} without a report; its log has the reason, unless it was killed. Repeat it: ` +
        `operations are idempotent.`
    )
  if ('report' in last) return last.report
  throw last.usage ? new UsageError(last.error) : new FailureError(last.error)
}

/** Yields complete lines; ends where the connection breaks. */
async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const bytes of body) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } catch {
    // A killed service ends its answers like this.
  }
}

/** Error codes of a connection that the other side has closed. */
const INTERRUPTED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

async function reach<Answer>(operatorUrl: string, send: () => Promise<Answer>): Promise<Answer> {
  try {
    return await send()
  } catch (error) {
    if (error instanceof FailureError) throw error
    const code = errorCode(error)
    if (INTERRUPTED.has(code))
      throw new FailureError(
        `The service at ${operatorUrl} ended before it had answered (${code}): it is unknown whether the operation ` +
          `was completed. Start the service again, and check gamenet status.`
      )
    throw new FailureError(
      `The service's operator port at ${operatorUrl} cannot be reached (${code}). It may be starting, or may have ` +
        `just ended: retry in a moment, or give another OPERATOR_URL.`
    )
  }
}

function refusalOf(status: number, text: string): Error {
  const parsed = z.object({ error: z.string() }).safeParse(parseJson(text))
  const sentence = parsed.success ? parsed.data.error : `The service answered ${status}.`
  return status === 400 ? new UsageError(sentence) : new FailureError(sentence)
}
