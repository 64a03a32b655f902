import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const GLIBC = process.platform === 'linux' ? '-gnu' : ''
/** The name of the package with ClickHouse's library for this system. */
export const LIBRARY_PACKAGE = `@chdb/lib-${process.platform}-${process.arch}${GLIBC}`

/** Returns the versions of the packages that keep files in a data directory, without loading them. */
export const engineVersions = (): Readonly<Record<string, string>> => ({
  clickhouse: versionOf(LIBRARY_PACKAGE),
  pglite: versionOf('@electric-sql/pglite'),
  lmdb: versionOf('lmdb')
})

/** Reads the version from a package.json next to the program or above it, which may not be importable. */
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
