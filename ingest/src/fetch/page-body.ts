import { PassThrough, type Readable, type Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'

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

type Decoder = Transform | ((body: AsyncIterable<Buffer>) => AsyncIterable<Buffer>)

function decoderOf(encoding: string | undefined): Decoder | undefined {
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
      return inflated
    default:
      return undefined
  }
}

/**
 * Decodes both forms of `deflate`: with the header of zlib (RFC 9110 8.4.1.2), and raw, which some servers send. The
 * low four bits of zlib's first byte are 8; a raw stream that begins so would be a stored block with padding that no
 * encoder writes.
 */
async function* inflated(body: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const chunks = body[Symbol.asyncIterator]()
  const first = await chunks.next()
  if (first.done === true) return
  const decoder = ((first.value[0] ?? 0) & 15) === 8 ? createInflate() : createInflateRaw()
  const all = async function* () {
    yield first.value
    yield* { [Symbol.asyncIterator]: () => chunks }
  }
  // Its failure destroys the decoder, so that the reader below throws it.
  pipeline(all, decoder).catch(ignoreLateError)
  yield* decoder
}

/** A discarded body may still fail; without a listener, its error would end the process. */
export function ignoreLateError(): void {}
