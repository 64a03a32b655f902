import { errorCode } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'
import { type Config, FailureError } from '../config.js'

/** Listens and returns the address. Throws a `FailureError` that names the variable of the port or of the host. */
export async function listen(app: FastifyInstance, host: string, port: number, variable: string): Promise<string> {
  try {
    return await app.listen({ host, port })
  } catch (error) {
    const code = errorCode(error)
    if (/^(ENOTFOUND|EAI_AGAIN|EADDRNOTAVAIL|EINVAL)$/.test(code))
      throw new FailureError(
        `${host} is not an address of this machine (${code}); set ${variable.replace('PORT', 'HOST')} to one, or to ` +
          `0.0.0.0 for all.`
      )
    const why = code === 'EADDRINUSE' ? 'is used by another program' : `cannot be listened on (${code})`
    throw new FailureError(`${host}:${port} ${why}; set ${variable} to another port, or 0 for any free one.`)
  }
}

/** Returns the address at which clients reach the API. */
export function publicUrl(config: Config): string {
  return config.PUBLIC_URL ?? `http://${config.HOST.includes(':') ? `[${config.HOST}]` : config.HOST}:${config.PORT}`
}
