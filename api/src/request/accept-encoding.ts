import type { IncomingHttpHeaders } from 'node:http'
import type { Coding } from './etag.js'
import { weightsOf } from './weights.js'

/** Returns the coding for the answer to a request with these headers. Node joins several `Accept-Encoding` headers. */
export function codingOf(headers: IncomingHttpHeaders): Coding {
  return codingFor(headers['accept-encoding'] as string | undefined)
}

/**
 * Returns the coding for an `Accept-Encoding` (RFC 9110, 12.5.3): the acceptable one with the highest weight; for equal
 * weights br, then gzip, then identity. Identity without the header, or if it permits nothing that we have: the RFC
 * allows that, and a readable body is more useful than a 406.
 */
export function codingFor(acceptEncoding: string | undefined): Coding {
  if (acceptEncoding === undefined || acceptEncoding === '') return 'identity'
  const known = remembered.get(acceptEncoding)
  if (known !== undefined) return known
  const coding = choose(acceptEncoding)
  if (remembered.size < REMEMBERED_MAX && acceptEncoding.length <= 100) remembered.set(acceptEncoding, coding)
  return coding
}

/** Number of cached headers. Clients send few different ones, and parsing is too slow for a cached answer. */
const REMEMBERED_MAX = 100
const remembered = new Map<string, Coding>()

function choose(acceptEncoding: string): Coding {
  const weights = weightsOf(acceptEncoding)
  const any = weights.get('*') ?? 0
  const weight = {
    br: weights.get('br') ?? any,
    gzip: weights.get('gzip') ?? weights.get('x-gzip') ?? any,
    identity: weights.get('identity') ?? (weights.has('*') ? any : 0.001)
  }
  const best = Math.max(weight.br, weight.gzip, weight.identity)
  if (best === 0) return 'identity'
  return weight.br === best ? 'br' : weight.gzip === best ? 'gzip' : 'identity'
}
