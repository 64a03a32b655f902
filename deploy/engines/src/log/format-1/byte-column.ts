/*
 * The byte forms of one column: the content of a batch of records before compression.
 * Integers are LEB128 varints; signed ones are zigzag-coded first.
 */

/** Reads values in sequence. Throws a RangeError at the end of the bytes. */
export class ByteReader {
  readonly #buffer: Buffer
  #position = 0

  constructor(buffer: Buffer) {
    this.#buffer = buffer
  }

  varint(): number {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = this.byte()
      value += (byte & 127) * scale
      if (byte < 128) return value
      scale *= 128
    }
  }

  zigzag(): number {
    const value = this.varint()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  byte(): number {
    const byte = this.#buffer[this.#position]
    if (byte === undefined) throw new RangeError('the batch ends in the middle of a value')
    this.#position += 1
    return byte
  }

  text(): string {
    return this.slice(this.varint())
  }

  /** Reads `bytes` bytes as UTF-8. */
  slice(bytes: number): string {
    const end = this.#position + bytes
    if (end > this.#buffer.length) throw new RangeError('the batch ends in the middle of a text')
    const text = this.#buffer.toString('utf8', this.#position, end)
    this.#position = end
    return text
  }
}

/** Reads numbers, stored as differences or as they are. */
export function readNumbers(reader: ByteReader, count: number): number[] {
  const asDeltas = reader.byte() === 1
  const values: number[] = []
  let before = 0
  for (let i = 0; i < count; i += 1) {
    before = asDeltas ? before + reader.zigzag() : reader.varint()
    values.push(before)
  }
  return values
}

/** Reads few distinct numbers with long runs: pairs of value and run length. */
export function readRuns(reader: ByteReader, count: number): number[] {
  const values: number[] = []
  while (values.length < count) {
    const value = reader.varint()
    const run = reader.varint()
    if (run === 0 || values.length + run > count) throw new RangeError('a run of the batch has a wrong length')
    for (let i = 0; i < run; i += 1) values.push(value)
  }
  return values
}

/** Reads 32-bit numbers stored as four planes of bytes. */
export function readPlanes(reader: ByteReader, count: number): number[] {
  const values = new Array<number>(count).fill(0)
  for (let plane = 0; plane < 4; plane += 1) {
    for (let i = 0; i < count; i += 1) values[i] = (values[i] ?? 0) * 256 + reader.byte()
  }
  return values
}

/** Reads texts: all lengths in UTF-16 units, then all bytes, so that all are decoded at once. */
export function readTexts(reader: ByteReader, count: number): string[] {
  const lengths = readNumbers(reader, count)
  const all = reader.text()
  let position = 0
  return lengths.map((length) => {
    const from = position
    position += length
    return all.slice(from, position)
  })
}
