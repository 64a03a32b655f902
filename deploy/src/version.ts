import { readFileSync } from 'node:fs'
import { engineVersions } from '@gamenet/engines/versions'
import { z } from 'zod'

const PACKAGE = new URL('../../package.json', import.meta.url)

/** The program's version, from its package. */
export const VERSION = z.object({ version: z.string() }).parse(JSON.parse(readFileSync(PACKAGE, 'utf8'))).version

/** The versions that use a data directory. */
export const VERSIONS = { program: VERSION, engines: engineVersions() }
