import type { RowLines } from './message.js'

/** Characters that are kept as text and encoded together: one by one, encoding costs more than building. */
const TEXT_CHARACTERS = 16_384
const BYTES_START = 65_536
/** UTF-8 takes up to 3 bytes per UTF-16 unit. */
const UNIT_BYTES_MAX = 3

/**
 * Lines for an insert, stored as bytes: the garbage collector would copy 65,000 texts repeatedly, which took a third of
 * the loader's time.
 */
export class LineWriter {
  #bytes = noBytes()
  #length = 0
  #text = ''
  #rows = 0

  get rows(): number {
    return this.#rows
  }

  /** Adds one line, without its end. */
  add(line: string): void {
    this.#text += `${line}\n`
    this.#rows += 1
    if (this.#text.length >= TEXT_CHARACTERS) this.#encode()
  }

  /** Returns the written lines in a separate buffer, and empties the writer. */
  take(): RowLines {
    this.#encode()
    const lines = { rows: this.#rows, body: this.#bytes.subarray(0, this.#length) }
    this.#bytes = noBytes()
    this.#length = 0
    this.#rows = 0
    return lines
  }

  #encode(): void {
    if (this.#text === '') return
    const needed = this.#length + this.#text.length * UNIT_BYTES_MAX
    if (needed > this.#bytes.length) {
      // Not from Node's pool: the whole buffer is transferred to another thread.
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2, BYTES_START))
      this.#bytes.copy(larger, 0, 0, this.#length)
      this.#bytes = larger
    }
    this.#length += this.#bytes.write(this.#text, this.#length)
    this.#text = ''
  }
}

/** A transferred buffer stays empty, so even an empty one cannot be shared. */
function noBytes(): Buffer<ArrayBuffer> {
  return Buffer.allocUnsafeSlow(0)
}
