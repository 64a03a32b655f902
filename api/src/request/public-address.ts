import { isIPv4 } from 'node:net'
import { addressList } from './address-list.js'

/**
 * Networks whose addresses name this machine, another machine in each network, or none (IANA's registries of special
 * purposes).
 */
const isSpecial = addressList(
  (
    '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.168.0.0/16 ' +
    '198.18.0.0/15 224.0.0.0/3'
  ).split(' ')
)
const isUnicast = addressList(['2000::/3'])
/** Of unicast: what names a protocol or a document, or contains an address of IPv4, which may be any. */
const isSpecialUnicast = addressList(['2001::/23', '2001:db8::/32', '2002::/16'])

const NAME = /^(?:[^.]+\.)+(?!(?:localhost|localdomain|local|internal|intranet|private|corp|home|lan)$)[^.]+$/
const HOME = /(?:^|\.)home\.arpa$/

/**
 * Returns whether an address names a machine that is the same for all readers, and none of their own network: a page
 * with the address would make each reader's browser ask there. `URL` has brought all forms of numbers into one. Names
 * are not resolved.
 */
export function isPublicHost({ hostname }: URL): boolean {
  if (isIPv4(hostname)) return !isSpecial(hostname)
  if (hostname.startsWith('[')) {
    const address = hostname.slice(1, -1)
    return isUnicast(address) && !isSpecialUnicast(address)
  }
  const name = hostname.replace(/\.$/, '')
  return NAME.test(name) && !HOME.test(name)
}
