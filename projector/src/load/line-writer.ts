import type { RowLines } from './message.js'

/** Characters that are kept as text until they are encoded together: one by one, encoding costs more than building. */
const TEXT_CHARACTERS = 16_384
const BYTES_START = 65_536
/** UTF-8 takes up to 3 bytes for a UTF-16 unit. */
const UNIT_BYTES_MAX = 3

/**
 * Lines on their way to an insert, kept as bytes: as 65,000 texts they would be copied by the garbage collector again and
 * again, which took a third of the loader's time.
 */
export class LineWriter {
  #bytes = noBytes()
  #length = 0
  #text = ''
  #rows = 0

  get rows(): number {
    return this.#rows
  }

  /** Takes one line, without its end. */
  add(line: string): void {
    this.#text += `${line}\n`
    this.#rows += 1
    if (this.#text.length >= TEXT_CHARACTERS) this.#encode()
  }

  /** Gives what was written, in a buffer of its own, and starts again. */
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
      // Not of Node's pool: the buffer is handed over to another thread as it is.
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2, BYTES_START))
      this.#bytes.copy(larger, 0, 0, this.#length)
      this.#bytes = larger
    }
    this.#length += this.#bytes.write(this.#text, this.#length)
    this.#text = ''
  }
}

/** A transferred buffer stays empty, so even one of no bytes cannot be shared. */
function noBytes(): Buffer<ArrayBuffer> {
  return Buffer.allocUnsafeSlow(0)
}
