import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Versions of the packages that keep files in a data directory; nothing of them is loaded for it. */
export const engineVersions = (): Readonly<Record<string, string>> => ({
  chdb: versionOf('chdb'),
  pglite: versionOf('@electric-sql/pglite'),
  lmdb: versionOf('lmdb')
})

/** As in its package.json, which lies next to its program or above it and may not be imported. */
export const versionOf = (name: string): string => {
  for (let at = new URL(import.meta.resolve(name)); at.pathname !== '/'; at = new URL('..', at)) {
    const found = packageAt(new URL('./package.json', at))
    if (found?.name === name && found.version !== undefined) return found.version
  }
  throw new Error(`The package ${name} has no package.json above ${import.meta.resolve(name)}; install it again.`)
}

const packageAt = (url: URL): { name?: string; version?: string } | undefined => {
  try {
    return JSON.parse(readFileSync(fileURLToPath(url), 'utf8')) as { name?: string; version?: string }
  } catch {
    return undefined
  }
}
