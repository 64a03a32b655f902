import type { IncomingMessage } from 'node:http'
import { isIP, isIPv4, type Socket } from 'node:net'
import { addressList } from './address-list.js'

/** Untrusted proxies that are named; a client can send the header from any number of addresses. */
const NAMED_MAX = 10

/**
 * The addresses by which clients are limited. `undefined` means that no limit per address applies: to clients on this
 * machine, to proxies themselves, and to a peer that sends `X-Forwarded-For` without being trusted, because it speaks
 * for clients whose addresses are not known.
 */
export type ClientAddresses = {
  /**
   * Returns the address of a request's client: the last one of `X-Forwarded-For` that is not a trusted proxy's, else
   * the peer's.
   */
  of(request: IncomingMessage): string | undefined
  /** Returns the address of a connection's peer. */
  ofPeer(socket: Socket): string | undefined
  /** Whether TRUSTED_PROXIES contains this address. */
  isTrusted(address: string): boolean
  /** The first peers that sent `X-Forwarded-For` without being trusted. */
  readonly untrustedProxies: ReadonlySet<string>
}

/** Returns the addresses of clients behind these proxies. `onUntrusted` is called once per untrusted proxy. */
export function clientAddresses(
  trustedProxies: readonly string[] = [],
  onUntrusted: (peer: string) => void = () => undefined
): ClientAddresses {
  const isTrusted = addressList(trustedProxies)
  const untrustedProxies = new Set<string>()
  const ofPeer = ({ remoteAddress }: Socket): string | undefined => {
    const peer = unmapped(remoteAddress ?? '')
    return isTrusted(peer) || untrustedProxies.has(peer) ? undefined : limitedAddress(peer)
  }
  const of = ({ headers, socket }: IncomingMessage): string | undefined => {
    const forwarded = headers['x-forwarded-for']
    if (forwarded === undefined) return ofPeer(socket)
    const peer = unmapped(socket.remoteAddress ?? '')
    if (!isTrusted(peer)) {
      if (isIP(peer) !== 0 && untrustedProxies.size < NAMED_MAX && !untrustedProxies.has(peer)) {
        untrustedProxies.add(peer)
        onUntrusted(peer)
      }
      return undefined
    }
    // Proxies append the address of their peer, so what stands before the last untrusted address is the client's own
    // word.
    const chain = String(forwarded).split(',').map(plainAddress)
    while (chain.length > 1 && isTrusted(chain.at(-1) ?? '')) chain.pop()
    return limitedAddress(chain.at(-1) ?? '')
  }
  return { of, ofPeer, isTrusted, untrustedProxies }
}

/** Returns the key of an address: of IPv6 the network of 64 bits, which one client has as a whole. */
function limitedAddress(address: string): string | undefined {
  if (isIP(address) === 0 || isLoopback(address)) return undefined
  if (isIPv4(address)) return address
  const [before = '', after] = address.replace(/%.*/, '').split('::')
  const groups = before === '' ? [] : before.split(':')
  const last = after === undefined || after === '' ? [] : after.split(':')
  const zeros = after === undefined ? [] : Array<string>(Math.max(0, 8 - groups.length - last.length)).fill('0')
  const first = [...groups, ...zeros, ...last].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${first.join(':')}::/64`
}

const isLoopback = addressList(['127.0.0.0/8', '::1'])

/** Returns an IPv4 address as such: a server on `::` sees it inside an IPv6 one. */
const unmapped = (address: string): string => address.replace(/^::ffff:(?=[\d.]+$)/i, '')

/** Returns an entry of `X-Forwarded-For` without the port that some gateways add. */
function plainAddress(entry: string): string {
  const text = entry.trim()
  return unmapped(/^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text)
}
