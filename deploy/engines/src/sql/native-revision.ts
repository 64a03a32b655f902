/*
 * The format Native for clients that state a revision of ClickHouse's protocol, such as its driver for Go: a head before each
 * block, and a byte between the type of a column and its values, which chDB writes only for clients of ports of its own.
 */

/** From this revision on the byte says how a column is serialized. */
export const SERIALIZATION_REVISION = 54_454

/** No overflows, no bucket; the end. */
const HEAD = Uint8Array.of(1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0)
/** As the types say. */
const USUAL = Uint8Array.of(0)
const WORD = 8

/** Returns blocks as a client of such a revision reads them. Throws at a type whose size is unknown. */
export function withRevision(native: Uint8Array): Uint8Array {
  const input = new Input(native)
  const parts: Uint8Array[] = []
  while (input.at < native.length) {
    parts.push(HEAD)
    let copied = input.at
    const columns = input.varUint()
    const rows = input.varUint()
    for (let column = 0; column < columns; column += 1) {
      input.text()
      const type = new TextDecoder().decode(input.text())
      parts.push(native.subarray(copied, input.at), USUAL)
      copied = input.at
      if (rows === 0) continue
      input.at += WORD * (type.match(/LowCardinality\(/g) ?? []).length
      skipValues(input, typeOf(type), rows)
    }
    parts.push(native.subarray(copied, input.at))
  }
  return Buffer.concat(parts)
}

class Input {
  at = 0
  readonly #bytes: Uint8Array
  readonly #view: DataView

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  varUint(): number {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#view.getUint8(this.at)
      this.at += 1
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
  }

  text(): Uint8Array {
    const length = this.varUint()
    this.at += length
    return this.#bytes.subarray(this.at - length, this.at)
  }

  word(): number {
    this.at += WORD
    return Number(this.#view.getBigUint64(this.at - WORD, true))
  }

  /** The last of `rows` offsets. */
  offsets(rows: number): number {
    this.at += WORD * Math.max(0, rows - 1)
    return rows === 0 ? 0 : this.word()
  }
}

type Type = { readonly name: string; readonly parameters: readonly string[] }

/** Names of types by the bytes of a value. */
const SIZES: readonly (readonly [number, string])[] = [
  [1, 'Nothing Bool Int8 UInt8 Enum8'],
  [2, 'Int16 UInt16 Enum16 Date BFloat16'],
  [4, 'Int32 UInt32 Float32 Date32 DateTime IPv4'],
  [8, 'Int64 UInt64 Float64 DateTime64'],
  [16, 'Int128 UInt128 UUID IPv6'],
  [32, 'Int256 UInt256']
]
const BYTES = new Map(SIZES.flatMap(([bytes, names]) => names.split(' ').map((name) => [name, bytes])))

function skipValues(input: Input, { name, parameters: [first = '', ...others] }: Type, rows: number): void {
  const skip = (type: string, count: number) => skipValues(input, typeOf(type), count)
  if (name === 'String') for (let row = 0; row < rows; row += 1) input.text()
  else if (name === 'LowCardinality') skipDictionary(input, first, rows)
  else if (name === 'Nullable') {
    input.at += rows
    skip(first, rows)
  } else if (name === 'Array') skip(first, input.offsets(rows))
  else if (name === 'Map') {
    const values = input.offsets(rows)
    for (const type of [first, ...others]) skip(type, values)
  } else if (name === 'Tuple') for (const element of [first, ...others]) skip(element.replace(ELEMENT_NAME, ''), rows)
  else input.at += rows * bytesOf(name, Number(first))
}

/** Values once each, then a number for each row. A null is the first of the values. The version of this layout is before all values. */
function skipDictionary(input: Input, type: string, rows: number): void {
  if (rows === 0) return
  const indexBytes = 2 ** (input.word() & INDEX_TYPE)
  skipValues(input, typeOf(type.replace(/^Nullable\((.*)\)$/s, '$1')), input.word())
  input.at += WORD + rows * indexBytes
}

const INDEX_TYPE = 0xff

const ELEMENT_NAME = /^(?:\w+|`(?:[^`\\]|\\.)*`) (?=\w)/

function bytesOf(name: string, first: number): number {
  if (name === 'FixedString') return first
  if (name === 'Decimal') return first <= 9 ? 4 : first <= 18 ? 8 : first <= 38 ? 16 : 32
  const bytes = name.startsWith('Interval') ? WORD : BYTES.get(name)
  if (bytes !== undefined) return bytes
  throw new Error(`Columns of the type ${name} are not sent in this format; convert them with toString.`)
}

/** Splits `Map(String, Array(UInt8))` into its name and its parameters. */
function typeOf(text: string): Type {
  const [, name = text, inner = ''] = /^(\w+)\((.*)\)$/s.exec(text) ?? []
  const parameters: string[] = []
  let depth = 0
  let parameter = ''
  for (const [piece] of inner.matchAll(/'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|[\s\S]/g)) {
    if (piece === ',' && depth === 0) {
      parameters.push(parameter.trim())
      parameter = ''
      continue
    }
    if (piece === '(') depth += 1
    if (piece === ')') depth -= 1
    parameter += piece
  }
  return { name, parameters: inner === '' ? [] : [...parameters, parameter.trim()] }
}
