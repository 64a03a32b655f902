const PREFIX = '/api/network-stats/'
const OTHER_PREFIX = '/api/insignia-stats/'

/** Returns the second path of a network statistic, for emulators; it has the same answer and is not deprecated. */
export function otherPath(path: string): string | undefined {
  return path.startsWith(PREFIX) ? OTHER_PREFIX + path.slice(PREFIX.length) : undefined
}
