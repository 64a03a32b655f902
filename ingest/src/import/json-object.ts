import { ndjsonCutter } from './json.js'
import { type Row, rowsOf } from './rows.js'

/** Limit of a file that is parsed as a whole, in characters. */
const CHARS_MAX = 16_777_216

type Fields = Readonly<Record<string, unknown>>

/**
 * Finds the rows in one JSON object: the objects with a column for every field, else the innermost ones. A row has the
 * values of the objects around it too, and as `key` the name under which it or its list stands. `line` counts rows.
 * Text that is not one object, or longer than 16 Mi characters, is divided as NDJSON.
 */
export async function* rowsOfObject(
  blocks: AsyncGenerator<string>,
  isRow: (columns: readonly string[]) => boolean
): AsyncGenerator<readonly Row[]> {
  let text = ''
  while (text.length <= CHARS_MAX) {
    const { value, done } = await blocks.next()
    if (done === true) break
    text += value
  }
  const whole = text.length <= CHARS_MAX ? parsed(text) : undefined
  if (whole === undefined) yield* rowsOf(joined(text, blocks), ndjsonCutter())
  else yield rowsIn(whole, isRow)
}

async function* joined(text: string, blocks: AsyncGenerator<string>): AsyncGenerator<string> {
  yield text
  yield* blocks
}

function rowsIn(whole: unknown, isRow: (columns: readonly string[]) => boolean): readonly Row[] {
  const rows: Row[] = []
  const take = (value: unknown, around: Fields): void => {
    if (Array.isArray(value)) {
      for (const item of value) take(item, around)
    } else if (isObject(value)) {
      const inner = Object.entries(value).filter(([, each]) => [each].flat().some(isObject))
      const own = { ...around, ...value }
      if (inner.length === 0 || isRow(Object.keys(own))) rows.push({ line: rows.length + 1, text: JSON.stringify(own) })
      else {
        const scalars = Object.entries(own).filter(([, each]) => !(each instanceof Object))
        for (const [key, each] of inner) take(each, { ...Object.fromEntries(scalars), key })
      }
    }
  }
  take(whole, {})
  return rows
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
