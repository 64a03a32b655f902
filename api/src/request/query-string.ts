import { Refusal } from '@gamenet/schemas'

/**
 * Returns the decoded query of a URL: a string for a parameter that is given once, an array for a repeated one. Refuses
 * invalid percent-encoding. The object has no prototype.
 */
export function readQuery(url: string): Record<string, string | string[]> {
  const query: Record<string, string | string[]> = Object.create(null)
  const mark = url.indexOf('?')
  if (mark === -1) return query
  const end = url.indexOf('#', mark)
  for (const pair of url.slice(mark + 1, end === -1 ? undefined : end).split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decoded(equals === -1 ? pair : pair.slice(0, equals))
    const value = equals === -1 ? '' : decoded(pair.slice(equals + 1))
    const before = query[name]
    if (Array.isArray(before)) before.push(value)
    else query[name] = before === undefined ? value : [before, value]
  }
  return query
}

/**
 * The value of `X-Unknown-Parameters`: the names in a query that an endpoint ignores, percent-encoded; undefined when
 * there are none. Shows at most 10 names of 40 characters, because a URL may hold thousands.
 */
export function unknownNames(query: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): string | undefined {
  const unknown = Object.keys(query).filter((name) => name !== '' && !known.has(name))
  if (unknown.length === 0) return undefined
  return unknown
    .slice(0, NAMES_MAX)
    .map((name) => encodeURIComponent([...name].slice(0, NAME_CHARACTERS_MAX).join('')))
    .join(', ')
}

const NAMES_MAX = 10
const NAME_CHARACTERS_MAX = 40

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch (error) {
    throw new Refusal('query_encoding_invalid', [], { cause: error })
  }
}
