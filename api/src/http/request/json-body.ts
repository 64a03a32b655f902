import { Refusal } from '@gamenet/schemas'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { shown } from './parameters.js'

const CHARSET = /;\s*charset\s*=\s*"?([^\s";]*)/i

/**
 * Bodies are JSON in UTF-8, and nothing else: bytes of another coding are refused, not replaced, so that no garbled text
 * is ever stored. `JSON.parse` makes fields called `__proto__` or `constructor` plain properties, and only known fields
 * are ever read; of a field that is given twice the last value counts. Where something is written, such a body is
 * refused: no client sends one by mistake, and other parsers may read it differently.
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
      const coding = request.headers['content-encoding'] ?? 'identity'
      if (!/^identity$/i.test(coding))
        throw new Refusal('media_type_unsupported', [`Content-Encoding: ${shown(coding)}`])
      let text: string
      try {
        text = UTF8.decode(bytes)
      } catch {
        throw new Refusal('body_encoding_invalid')
      }
      const body = parsed(text)
      const oddity = request.routeOptions.config.isStrictJson === true ? oddityOf(text) : undefined
      if (oddity !== undefined) throw new Refusal('request_invalid', [`the body ${oddity}`])
      return body
    }
  )
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether bodies that can be understood in two ways are refused. */
    isStrictJson?: boolean
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Refusal('json_malformed', [], { cause: error })
  }
}

/** No body that means something has more than three. */
const LEVELS_MAX = 32
/** Names by which programs reach what all objects share. */
const SHARED = new Set(['__proto__', 'constructor', 'prototype'])
/** Of valid JSON: a name with its colon, a text that is none, or a bracket. */
const TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*")[ \t\n\r]*(:?)|[{}[\]]/g

/** What is wrong with a body that is valid JSON; undefined when nothing is. */
function oddityOf(text: string): string | undefined {
  const levels: Set<string>[] = []
  for (const [token, quoted, colon] of text.matchAll(TOKEN)) {
    if (token === '{' || token === '[') levels.push(new Set())
    else if (token === '}' || token === ']') levels.pop()
    if (levels.length > LEVELS_MAX) return `is nested deeper than ${LEVELS_MAX} levels`
    if (quoted === undefined || colon !== ':') continue
    const name = JSON.parse(quoted) as string
    const names = levels.at(-1)
    if (SHARED.has(name)) return `must have no field ${shown(name)}`
    if (names?.has(name) === true) return `has the field ${shown(name)} twice`
    names?.add(name)
  }
  return undefined
}

/** Skips a byte order mark. */
const UTF8 = new TextDecoder('utf-8', { fatal: true })
