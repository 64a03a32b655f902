import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

/** Below this size the framing of a compressed body outweighs the bytes that compression saves. */
const COMPRESSED_BYTES_MIN = 1024

const gzipBytes = promisify<Uint8Array, object, Uint8Array>(gzip)
const brotliBytes = promisify<Uint8Array, object, Uint8Array>(brotliCompress)

/** Middle levels: one client waits for the compression, many get its result. */
export const compress = {
  gzip: (bytes: Uint8Array) => gzipBytes(bytes, { level: 6 }),
  br: (bytes: Uint8Array) =>
    brotliBytes(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength }
    })
} as const

/** Returns whether a body is worth compressing. */
export const isCompressible = (body: Uint8Array): boolean => body.byteLength >= COMPRESSED_BYTES_MIN
