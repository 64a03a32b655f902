import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import type { RefusalCode } from '@gamenet/schemas'

/** `uri-host [":" port]` of RFC 9110, 7.2; an http URI has no empty host (4.2.1). */
const HOST = /^(?:\[([\da-fA-F:.]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-fA-F]{2})+)(?::(\d{0,5}))?$/

const PORT_MAX = 65_535

/** The last valid host: nearly all requests have the same. */
let lastHost: string | undefined

/** Returns the fault of a request without exactly one host (RFC 9112, 3.2): a proxy could choose another one of two. */
export function hostFault({ headers, httpVersion, rawHeaders }: IncomingMessage): RefusalCode | undefined {
  const { host } = headers
  if (host === undefined) return httpVersion === '1.1' ? 'host_missing' : undefined
  // Node silently keeps the first of several.
  let hosts = 0
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = rawHeaders[n] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts > 1 || !isHost(host) ? 'host_invalid' : undefined
}

/**
 * Returns what is wrong with the target of a request (RFC 9112, 3.2): it is a path, an http URI with the host of the
 * header (RFC 9110, 4.2.1), or for OPTIONS `*`.
 */
export function targetFault({ url = '', method, headers }: IncomingMessage): string | undefined {
  if (url.includes('#')) return 'its target has a fragment (#), which clients keep for themselves'
  if (url.startsWith('/')) return undefined
  if (url === '*') return method === 'OPTIONS' ? undefined : 'its target * is for OPTIONS alone'
  const host = /^https?:\/\/([^/?]*)/i.exec(url)?.[1]
  if (host === undefined) return 'its target is neither a path nor an http URI'
  if (!isHost(host)) return `the host in its target is ${host === '' ? 'empty' : 'not valid'}`
  const isSame = headers.host === undefined || withoutPort(host) === withoutPort(headers.host)
  return isSame ? undefined : 'the host in its target is not that of its header Host'
}

/** Returns a host in lower case, without a port that its scheme implies. */
const withoutPort = (host: string): string => host.toLowerCase().replace(/:(80|443)?$/, '')

function isHost(host: string): boolean {
  if (host === lastHost) return true
  const found = HOST.exec(host)
  if (found === null) return false
  const [, ipv6, port] = found
  if ((ipv6 !== undefined && !isIPv6(ipv6)) || Number(port ?? 0) > PORT_MAX) return false
  lastHost = host
  return true
}
