import type { FastifyInstance } from 'fastify'
import { assetOf, sendAsset } from './reply/asset.js'

/** The browser SDK, and which auth service it asks unless a page says otherwise. */
export type ServiceAuthFile = {
  /** The text of the module that the compiler made of the SDK's `service-auth.ts`. */
  readonly module: string
  /** `{auth_url}`; without one every page has to give `apiUrl`. */
  readonly authUrl?: string | undefined
}

/** Pages load it at every visit: they do without asking for five minutes, and then a 304 is enough. */
const HEADERS = {
  'Cache-Control': 'public, max-age=300',
  // Pages that are isolated from other origins (COEP) may load it, too.
  'Cross-Origin-Resource-Policy': 'cross-origin'
}
const TYPE = 'text/javascript; charset=utf-8'

/**
 * The browser SDK at `/service-auth.js`, a script that sets `globalThis.ServiceAuth` and `module.exports`, and at
 * `/service-auth.mjs`, a module. Rejects when the text is not the module that is expected.
 */
export async function addServiceAuth(app: FastifyInstance, { module, authUrl }: ServiceAuthFile): Promise<void> {
  const configured = withAuthUrl(withoutSourceMap(module), authUrl)
  const forms: readonly [path: string, text: string][] = [
    ['/service-auth.mjs', configured],
    ['/service-auth.js', classicScript(configured)]
  ]
  for (const [path, text] of forms) {
    const asset = await assetOf(TYPE, Buffer.from(text))
    app.get(path, async (request, reply) => sendAsset(asset, HEADERS, request, reply))
  }
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

function withoutSourceMap(module: string): string {
  return module.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n')
}

/** A module that imports nothing becomes a script: its names stay inside a function, its class goes out. */
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
