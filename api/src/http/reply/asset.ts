import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Coding, etagOf, namedTag } from '../../answers/etag.js'
import { codingFor } from '../request/accept-encoding.js'

/** A file that is given away as it is, in every coding. */
export type Asset = {
  readonly type: string
  readonly identity: string
  readonly bodies: Readonly<Record<Coding, Buffer>>
}

const BROTLI_QUALITY = 9

/** Makes an asset of a file's bytes and its `Content-Type`. */
export async function assetOf(type: string, body: Buffer): Promise<Asset> {
  const [packed, gzipped] = await Promise.all([
    promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
    promisify(gzip)(body)
  ])
  return {
    type,
    identity: createHash('sha256').update(body).digest('base64url').slice(0, 27),
    bodies: { identity: body, gzip: gzipped, br: packed }
  }
}

/** Answers with an asset and further headers, or with 304 when the caller has it. */
export function sendAsset(
  { type, identity, bodies }: Asset,
  headers: Readonly<Record<string, string>>,
  request: FastifyRequest,
  reply: FastifyReply
): FastifyReply {
  const accepted = request.headers['accept-encoding']
  const coding = codingFor(Array.isArray(accepted) ? accepted.join(', ') : accepted)
  reply.headers({ ...headers, 'Content-Type': type, Vary: 'Accept-Encoding' })
  const { 'if-none-match': ifNoneMatch } = request.headers
  const tag = ifNoneMatch === undefined ? undefined : namedTag(ifNoneMatch, identity)
  if (tag !== undefined) return reply.code(304).header('ETag', tag).send()
  reply.header('ETag', etagOf(identity, coding))
  if (coding !== 'identity') reply.header('Content-Encoding', coding)
  return reply.send(bodies[coding])
}
