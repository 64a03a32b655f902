import { Refusal } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'

/**
 * Reads bodies as JSON in UTF-8, and no other type. Fastify's own parser takes bytes that are no UTF-8 for U+FFFD, and
 * refuses fields called `__proto__` or `constructor` as if they were no JSON; to us they are unknown fields like others:
 * `JSON.parse` makes them plain properties, and only known fields are ever read.
 */
export function readJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_request: unknown, bytes: Buffer) => {
    try {
      return JSON.parse(UTF8.decode(bytes)) as unknown
    } catch (error) {
      throw new Refusal('json_malformed', [], { cause: error })
    }
  })
}

/** Skips a byte order mark. */
const UTF8 = new TextDecoder('utf-8', { fatal: true })
