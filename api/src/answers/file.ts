import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { COMMON_HEADERS, flat } from '../reply/headers.js'
import { FILE_FORMATS, type FormatName } from '../request/format.js'
import { answerHeaders, type ResolvedUrl } from './resolved-url.js'

/**
 * The longest time of a transfer; clients continue with a range. One that reads nothing meets the timeout of
 * connections.
 */
const TOTAL_MS = 1_800_000

/** Returns the identity of an answer as a file: each format has its own ETag. */
export function fileIdentity({ identity }: Pick<ResolvedUrl, 'identity'>, format: FormatName): string {
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
 * Returns `title-online-history_4d5307e6_2026-03-01_2026-04-01`: the operation, the title and the days of the window.
 */
function fileName(operationId: string, resolved: unknown): string {
  const { titleId, fromMs, toMs } = (resolved ?? {}) as Record<string, unknown>
  const operation = operationId.replace(/^get/, '').replace(/(?<!^)[A-Z]/g, (letter) => `-${letter}`)
  const days = [fromMs, toMs].flatMap((ms) => (typeof ms === 'number' ? [new Date(ms).toISOString().slice(0, 10)] : []))
  return [operation.toLowerCase(), ...(typeof titleId === 'string' && titleId !== '' ? [titleId] : []), ...days].join(
    '_'
  )
}

/**
 * Sends a stream at the client's pace. If it fails, or lasts too long, the connection is destroyed: with a regular
 * end, half a file would look complete. Resolves when the file has been sent; rejects when the connection was
 * destroyed.
 */
export async function sendFile(body: Readable, response: ServerResponse, totalMs = TOTAL_MS): Promise<void> {
  await pipeline(body, response, { signal: AbortSignal.timeout(totalMs) })
}
