/*
 * The byte forms of one column: the content of a batch of records before compression.
 * Integers are LEB128 varints; signed ones are zigzag-coded first.
 */

const SIZE_START = 4096

/** Bytes written one value after the other into a buffer that grows. */
export class ByteWriter {
  #buffer = Buffer.allocUnsafe(SIZE_START)
  #length = 0

  /** A whole number from 0 to 2^53 - 1. */
  varint(value: number): void {
    this.#reserve(8)
    const buffer = this.#buffer
    let rest = value
    while (rest > 0x7fffffff) {
      buffer[this.#length++] = (rest % 128) | 128
      rest = Math.floor(rest / 128)
    }
    while (rest > 127) {
      buffer[this.#length++] = (rest & 127) | 128
      rest >>>= 7
    }
    buffer[this.#length++] = rest
  }

  /** A whole number of either sign with |value| < 2^52. */
  zigzag(value: number): void {
    this.varint(value < 0 ? -value * 2 - 1 : value * 2)
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#buffer[this.#length++] = value
  }

  /** A text: its length in bytes, then UTF-8. */
  text(value: string): void {
    const bytes = Buffer.byteLength(value)
    this.varint(bytes)
    this.#reserve(bytes)
    this.#length += this.#buffer.write(value, this.#length, bytes)
  }

  /** All that was written. The view is valid until the next write. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + bytes))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}

/** Reads what {@link ByteWriter} wrote. Throws a RangeError when the bytes end too early. */
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

  /** The next `bytes` bytes as UTF-8. */
  slice(bytes: number): string {
    const end = this.#position + bytes
    if (end > this.#buffer.length) throw new RangeError('the batch ends in the middle of a text')
    const text = this.#buffer.toString('utf8', this.#position, end)
    this.#position = end
    return text
  }
}

/** Numbers as differences, or as they are: whichever takes fewer bytes before compression. */
export function writeNumbers(writer: ByteWriter, values: readonly number[]): void {
  let plainBytes = 0
  let deltaBytes = 0
  let before = 0
  for (const value of values) {
    plainBytes += varintBytes(value)
    deltaBytes += varintBytes(Math.abs(value - before) * 2)
    before = value
  }
  const asDeltas = deltaBytes < plainBytes
  writer.byte(asDeltas ? 1 : 0)
  before = 0
  for (const value of values) {
    if (asDeltas) writer.zigzag(value - before)
    else writer.varint(value)
    before = value
  }
}

/** What {@link writeNumbers} wrote. */
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

/** Few distinct numbers, often the same many times in a row: pairs of value and run length. */
export function writeRuns(writer: ByteWriter, values: readonly number[]): void {
  for (let i = 0; i < values.length; ) {
    const value = values[i] ?? 0
    let end = i + 1
    while (end < values.length && values[end] === value) end += 1
    writer.varint(value)
    writer.varint(end - i)
    i = end
  }
}

/** What {@link writeRuns} wrote. */
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

/** 32-bit numbers as four planes of bytes: ids share their high bytes, which then compress to nothing. */
export function writePlanes(writer: ByteWriter, values: readonly number[]): void {
  for (let shift = 24; shift >= 0; shift -= 8) {
    for (const value of values) writer.byte((value >>> shift) & 255)
  }
}

/** What {@link writePlanes} wrote. */
export function readPlanes(reader: ByteReader, count: number): number[] {
  const values = new Array<number>(count).fill(0)
  for (let plane = 0; plane < 4; plane += 1) {
    for (let i = 0; i < count; i += 1) values[i] = (values[i] ?? 0) * 256 + reader.byte()
  }
  return values
}

/** Texts: all lengths, then all bytes. */
export function writeTexts(writer: ByteWriter, values: readonly string[]): void {
  writeNumbers(
    writer,
    values.map((value) => value.length)
  )
  writer.text(values.join(''))
}

/**
 * What {@link writeTexts} wrote. Lengths are in UTF-16 units of the joined text, so that one decoding serves all
 * and an ASCII batch is cut without looking at its characters.
 */
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

function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) bytes += 1
  return bytes
}
