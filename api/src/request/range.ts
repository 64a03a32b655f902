import type { IncomingMessage, ServerResponse } from 'node:http'
import { Refusal } from '@gamenet/schemas'

/** The bytes of a file that an answer has, and its status and headers. */
export type Part = {
  readonly status: number
  readonly first: number
  readonly last: number
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Returns the part of a file of so many bytes that a request asks for (RFC 9110, 14.2): several ranges, and a range
 * of HEAD, are ignored. `validators` are the values of `If-Range` for which the file is the client's; without any, no
 * range is answered. Throws the refusal of a range beyond the end.
 */
export function partOf(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  response: ServerResponse,
  bytes: number,
  validators: readonly string[]
): Part {
  const isCurrent = validators.includes(String(headers['if-range'] ?? validators[0]))
  const range = method === 'GET' && isCurrent ? rangeOf(headers.range, bytes) : undefined
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
 * Returns the single range of bytes of a header `Range`; undefined for one that asks for something else, which is
 * ignored.
 */
function rangeOf(
  header: string | undefined,
  bytes: number
): { first: number; last: number } | 'unsatisfiable' | undefined {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/i.exec(header ?? '') ?? []
  if (from === undefined || to === undefined || (from === '' && to === '')) return undefined
  const first = from === '' ? Math.max(0, bytes - Number(to)) : Number(from)
  const last = from === '' || to === '' ? bytes - 1 : Math.min(bytes - 1, Number(to))
  if (from !== '' && to !== '' && Number(to) < Number(from)) return undefined
  return first > last || first >= bytes ? 'unsatisfiable' : { first, last }
}
