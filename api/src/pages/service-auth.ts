import type { FastifyInstance } from 'fastify'
import { addAssets } from './asset.js'

/** The browser SDK and its default auth service. */
export type ServiceAuthFile = {
  /** The compiled module of the SDK's `service-auth.ts`, as text. */
  readonly module: string
  /** `{auth_url}`; without it, every page must pass `apiUrl`. */
  readonly authUrl?: string | undefined
}

/** Pages load it at every visit: browsers reuse it for five minutes, then revalidate. */
const HEADERS = {
  'Cache-Control': 'public, max-age=300',
  // Cross-origin isolated pages (COEP) may load it.
  'Cross-Origin-Resource-Policy': 'cross-origin'
}

/**
 * Serves the browser SDK at `/service-auth.js`, a script that sets `globalThis.ServiceAuth` and `module.exports`, and
 * at `/service-auth.mjs`, a module. Rejects when the text is not the expected module.
 */
export async function addServiceAuth(app: FastifyInstance, { module, authUrl }: ServiceAuthFile): Promise<void> {
  const configured = withAuthUrl(withoutSourceMap(module), authUrl)
  const assets = [
    { path: '/service-auth.mjs', content: configured },
    { path: '/service-auth.js', content: classicScript(configured) }
  ]
  await addAssets(app, assets, HEADERS)
}

const NO_API_URL = "const DEFAULT_API_URL = '';"

function withAuthUrl(module: string, authUrl: string | undefined): string {
  const [before, after, ...more] = module.split(NO_API_URL)
  if (before === undefined || after === undefined || more.length > 0) {
    throw new Error(`The browser SDK has ${more.length === 0 ? 'no' : 'more than one'} line "${NO_API_URL}"; build it.`)
  }
  if (authUrl === undefined) return module
  return `${before}const DEFAULT_API_URL = ${JSON.stringify(`${authUrl.replace(/\/+$/, '')}/api`)};${after}`
}

const withoutSourceMap = (module: string): string => module.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n')

/** Wraps a module without imports in a function that exports only its class. */
function classicScript(module: string): string {
  const inner = module.replace(/^export default \w+;\n/m, '').replace(/^export (?=class )/gm, '')
  const left = /^(?:import|export)\b.*$/m.exec(inner)
  if (left !== null) throw new Error(`The browser SDK cannot be a script with "${left[0]}" in it.`)
  return `(() => {
'use strict';
${inner}
globalThis.ServiceAuth = ServiceAuth;
if (typeof module === 'object' && module !== null) {
    module.exports = ServiceAuth;
    module.exports.ServiceAuth = ServiceAuth;
    module.exports.ServiceAuthError = ServiceAuthError;
}
})();
`
}
