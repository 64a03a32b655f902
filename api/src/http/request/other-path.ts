const PREFIX = '/api/network-stats/'
const OTHER_PREFIX = '/api/insignia-stats/'

/** The second path of statistics of the network, which emulators ask; it answers the same and is not deprecated. */
export function otherPath(path: string): string | undefined {
  return path.startsWith(PREFIX) ? OTHER_PREFIX + path.slice(PREFIX.length) : undefined
}
