import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { Refusal } from '@gamenet/schemas'
import { namedTag, permitsTag } from '../../answers/etag.js'
import { FILE_FORMATS, type FormatName } from '../request/format.js'
import { rangeOf } from '../request/range.js'
import { answerHeaders, type ResolvedUrl } from '../request/resolved-url.js'
import { COMMON_HEADERS, flat } from './headers.js'

/** A client that reads less than a buffer (64 KiB) in this time only keeps a connection and disk space busy. */
const STALLED_MS = 60_000
/** The longest time of a transfer; clients continue with a range. */
const TOTAL_MS = 1_800_000

/** Returns the identity of an answer as a file: each format has its own ETag. */
export function fileIdentity({ identity }: ResolvedUrl, format: FormatName): string {
  return `${identity}.${format}`
}

/**
 * Returns the headers of an answer as a file; without a tag it is not cached. `further` are those of the answer in
 * JSON that follow from the data.
 */
export function fileHeaders(
  resolved: ResolvedUrl,
  format: FormatName,
  operationId: string,
  { tag, further = {} }: { tag: string | undefined; further?: Readonly<Record<string, string>> | undefined }
): string[] {
  const { Link: link } = further
  return flat({
    'Content-Type': FILE_FORMATS[format].type,
    'Content-Disposition': `attachment; filename="${fileName(operationId, resolved.resolved)}.${format}"`,
    ...COMMON_HEADERS,
    ...answerHeaders(resolved.dataVersion),
    ...(tag === undefined ? { 'Cache-Control': 'no-store' } : { ETag: tag, 'Accept-Ranges': 'bytes' }),
    ...resolved.headers,
    ...further,
    ...(link === undefined ? {} : { Link: link.replace('>; rel="next"', `&format=${format}>; rel="next"`) })
  })
}

/**
 * Returns the status and the bytes of an answer to a request for a file or a range of it (RFC 9110, 14.2). Throws the
 * refusal of a condition or a range.
 */
export function partOf(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  response: ServerResponse,
  bytes: number,
  tag: string | undefined
): {
  readonly status: number
  readonly first: number
  readonly last: number
  readonly headers: Record<string, string>
} {
  if (tag !== undefined && !permitsTag(headers['if-match'], tag)) throw new Refusal('precondition_failed')
  const isRanged = tag !== undefined && method === 'GET' && [undefined, tag].includes(headers['if-range'] as string)
  const range = isRanged ? rangeOf(headers.range, bytes) : undefined
  if (range === 'unsatisfiable') {
    response.setHeader('Content-Range', `bytes */${bytes}`)
    throw new Refusal('range_unsatisfiable', [String(bytes)])
  }
  const { first, last } = range ?? { first: 0, last: bytes - 1 }
  const length = { 'Content-Length': String(last - first + 1) }
  if (range === undefined) return { status: 200, first, last, headers: length }
  return { status: 206, first, last, headers: { ...length, 'Content-Range': `bytes ${first}-${last}/${bytes}` } }
}

/**
 * Returns the tag by which `If-None-Match` names a file with this identity, whatever its bytes: the comparison is
 * weak.
 */
export function namedFileTag(ifNoneMatch: string, identity: string): string | undefined {
  const begun = `"${identity}.`
  const named = ifNoneMatch.split(',').find((tag) => tag.trim().replace(/^W\//, '').startsWith(begun))
  return named?.trim().replace(/^W\//, '') ?? namedTag(ifNoneMatch, identity)
}

/** Returns `title-online-history_4d5307e6_2026-03-01_2026-04-01`: the operation, the title and the days of the window. */
function fileName(operationId: string, resolved: unknown): string {
  const { titleId, fromMs, toMs } = (resolved ?? {}) as Record<string, unknown>
  const operation = operationId.replace(/^get/, '').replace(/(?<!^)[A-Z]/g, (letter) => `-${letter}`)
  const days = [fromMs, toMs].flatMap((ms) => (typeof ms === 'number' ? [new Date(ms).toISOString().slice(0, 10)] : []))
  return [operation.toLowerCase(), ...(typeof titleId === 'string' && titleId !== '' ? [titleId] : []), ...days].join(
    '_'
  )
}

/**
 * Sends a stream at the client's pace. If it fails, or the client stalls, the connection is destroyed: with a regular end, half
 * a file would look complete. Resolves when the file has been sent; rejects when the connection was destroyed.
 */
export async function sendFile(
  body: Readable,
  response: ServerResponse,
  { stalledMs = STALLED_MS, totalMs = TOTAL_MS }: { readonly stalledMs?: number; readonly totalMs?: number } = {}
): Promise<void> {
  const end = performance.now() + totalMs
  const left = new AbortController()
  const leave = () => {
    body.destroy()
    left.abort()
  }
  response.once('close', leave)
  try {
    for await (const chunk of body) {
      if (response.write(chunk)) continue
      const isLast = end - performance.now() < stalledMs
      const reason = isLast ? `not the whole file in ${totalMs / 1000} s` : `less than 64 KiB in ${stalledMs / 1000} s`
      const giveUp = () => left.abort(new Error(`The client took ${reason}.`))
      const stalled = setTimeout(giveUp, isLast ? Math.max(0, end - performance.now()) : stalledMs)
      await once(response, 'drain', { signal: left.signal }).finally(() => clearTimeout(stalled))
    }
    response.end()
  } catch (error) {
    response.destroy()
    throw error
  } finally {
    response.off('close', leave)
    body.destroy()
  }
}
