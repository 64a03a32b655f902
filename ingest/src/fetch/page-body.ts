import { PassThrough, type Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

/** The value of `Accept-Encoding`: the encodings that {@link readPageBody} decodes. */
export const ACCEPTED_ENCODINGS = 'gzip, br, deflate'

/** A page's text, or a sentence with the reason why there is none. */
export type PageBody = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string }

/**
 * Reads a body to its end: decodes the content encoding, keeps at most `bytesMax` bytes *after* that (a few kilobytes
 * can unpack to gigabytes), decodes UTF-8 strictly. Rejects when the stream fails: also when the body is shorter than
 * its Content-Length or the compressed bytes are truncated.
 */
export async function readPageBody(
  body: Readable,
  options: { encoding: string | undefined; bytesMax: number; signal: AbortSignal }
): Promise<PageBody> {
  const decoder = decoderOf(options.encoding)
  if (decoder === undefined) {
    body.on('error', ignoreLateError).destroy()
    return { ok: false, reason: `the content encoding is ${options.encoding}, expected one of ${ACCEPTED_ENCODINGS}` }
  }
  const chunks: Buffer[] = []
  let bytes = 0
  let isTooLarge = false
  try {
    await pipeline(
      body,
      decoder,
      async (decoded: AsyncIterable<Buffer>) => {
        for await (const chunk of decoded) {
          bytes += chunk.length
          isTooLarge = bytes > options.bytesMax
          if (isTooLarge) return
          chunks.push(chunk)
        }
      },
      { signal: options.signal }
    )
  } catch (error) {
    // Leaving the loop early ends the pipeline with an additional error.
    if (!isTooLarge) throw error
  }
  if (isTooLarge) return { ok: false, reason: `the page is larger than ${options.bytesMax} bytes` }
  try {
    return { ok: true, text: new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)) }
  } catch {
    return { ok: false, reason: 'the page is not valid UTF-8' }
  }
}

function decoderOf(encoding: string | undefined): Transform | undefined {
  switch ((encoding ?? 'identity').trim().toLowerCase()) {
    case '':
    case 'identity':
      return new PassThrough()
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'br':
      return createBrotliDecompress()
    case 'deflate':
      return createInflate()
    default:
      return undefined
  }
}

/** A discarded body may still fail; without a listener, its error would end the process. */
export function ignoreLateError(): void {}
