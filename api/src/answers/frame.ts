import { COMMON_HEADERS, checkedHeaders, FOR_ONE_ALONE, JSON_TYPE } from '../reply/headers.js'
import { type Coding, etagOf } from '../request/etag.js'
import type { Answer, Frame } from './answer-cache.js'
import { answerHeaders } from './resolved-url.js'

/**
 * Returns an answer in one coding. The answer to a POST has no ETag: it would name the answer to GET at that path (RFC
 * 9110, 8.8.3, 9.3.3).
 */
export function frameOf(answer: Answer, coding: Coding, bytes: Uint8Array, isPosted: boolean): Frame {
  const headers: Record<string, string> = {
    'Content-Length': String(bytes.byteLength),
    'Content-Type': JSON_TYPE,
    ...COMMON_HEADERS,
    ...answerHeaders(answer.dataVersion),
    ...(isPosted || answer.isProvisional ? { 'Cache-Control': 'no-store' } : { ETag: etagOf(answer.identity, coding) }),
    ...answer.headers
  }
  if (coding !== 'identity') headers['Content-Encoding'] = coding
  return { bytes, headers: checkedHeaders(headers) }
}

/**
 * Returns an answer for one viewer. Not compressed, because one body contains secrets and text of other users (BREACH).
 */
export function privateFrameOf(answer: Answer): Frame {
  const headers = {
    'Content-Length': String(answer.body.byteLength),
    'Content-Type': JSON_TYPE,
    ...COMMON_HEADERS,
    'Cache-Control': FOR_ONE_ALONE,
    'X-Data-Version': answer.dataVersion,
    ...answer.headers
  }
  return { bytes: answer.body, headers: checkedHeaders(headers) }
}
