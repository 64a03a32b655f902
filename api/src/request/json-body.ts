import { Refusal } from '@gamenet/schemas'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { shown } from './parameters.js'

const CHARSET = /;\s*charset\s*=\s*"?([^\s";]*)/i

/**
 * Bodies are JSON in UTF-8. Bytes of another encoding are refused, not replaced, so that no garbled text is stored.
 * `JSON.parse` makes fields named `__proto__` or `constructor` plain properties, only known fields are read, and the
 * last value of a repeated field counts. Routes that write refuse such bodies: no client sends one by mistake, and
 * other parsers may read it differently.
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
    /** Whether ambiguous bodies are refused. */
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

/** A valid body has at most three levels. */
const LEVELS_MAX = 32
/** Names with which programs reach properties shared by all objects. */
const SHARED = new Set(['__proto__', 'constructor', 'prototype'])
/** Tokens of valid JSON: a name with its colon, another text, or a bracket. */
const TOKEN = /("[^"\\]*(?:\\.[^"\\]*)*")[ \t\n\r]*(:?)|[{}[\]]/g

/** Returns the fault of a body of valid JSON; undefined if there is none. */
function oddityOf(text: string): string | undefined {
  const levels: Set<string>[] = []
  for (const [token, quoted, colon] of text.matchAll(TOKEN)) {
    if (token === '{' || token === '[') levels.push(new Set())
    else if (token === '}' || token === ']') levels.pop()
    if (levels.length > LEVELS_MAX) return `is nested deeper than ${LEVELS_MAX} levels`
    if (quoted === undefined || colon !== ':') continue
    const name = JSON.parse(quoted) as string
    const names = levels.at(-1)
    if (SHARED.has(name)) return `must not have the field ${shown(name)}`
    if (names?.has(name) === true) return `has the field ${shown(name)} twice`
    names?.add(name)
  }
  return undefined
}

/** Skips a byte order mark. */
const UTF8 = new TextDecoder('utf-8', { fatal: true })
