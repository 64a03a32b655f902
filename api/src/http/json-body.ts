import { Refusal } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'
import { shown } from './parameters.js'

const CHARSET = /;\s*charset\s*=\s*"?([^\s";]*)/i

/**
 * Bodies are JSON in UTF-8, and nothing else: bytes of another coding are refused, not replaced, so that no garbled text
 * is ever stored. Keys that could poison a prototype are refused too; of a key that is given twice the last value counts.
 */
export function addJsonBodies(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const type = request.headers['content-type'] ?? ''
    if (!/^utf-?8$/i.test(CHARSET.exec(type)?.[1] ?? 'utf-8')) {
      done(new Refusal('media_type_unsupported', [shown(type)]))
      return
    }
    let text: string
    try {
      text = new TextDecoder('utf-8', { fatal: true }).decode(body as Buffer)
    } catch {
      done(new Refusal('body_encoding_invalid'))
      return
    }
    return parse(request, text, done)
  })
}
