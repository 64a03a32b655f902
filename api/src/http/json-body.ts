import { Refusal } from '@gamenet/schemas'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { shown } from './parameters.js'

const CHARSET = /;\s*charset\s*=\s*"?([^\s";]*)/i

/**
 * Bodies are JSON in UTF-8, and nothing else: bytes of another coding are refused, not replaced, so that no garbled text
 * is ever stored. Fastify's own parser refuses fields called `__proto__` or `constructor` as if they were no JSON; to us
 * they are unknown fields like others: `JSON.parse` makes them plain properties, and only known fields are ever read. Of
 * a field that is given twice the last value counts.
 */
export function addJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, bytes: Buffer) => {
      const type = request.headers['content-type'] ?? ''
      if (!/^utf-?8$/i.test(CHARSET.exec(type)?.[1] ?? 'utf-8'))
        throw new Refusal('media_type_unsupported', [shown(type)])
      let text: string
      try {
        text = UTF8.decode(bytes)
      } catch {
        throw new Refusal('body_encoding_invalid')
      }
      try {
        return JSON.parse(text) as unknown
      } catch (error) {
        throw new Refusal('json_malformed', [], { cause: error })
      }
    }
  )
}

/** Skips a byte order mark. */
const UTF8 = new TextDecoder('utf-8', { fatal: true })
