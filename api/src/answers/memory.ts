import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { LRUCache } from 'lru-cache'
import type { Coding } from './etag.js'

/** Below this many bytes the frame of a compressed answer eats what compressing saves. */
const COMPRESSED_BYTES_MIN = 1024
/** One answer may take this share of the memory; a larger one is sent and forgotten. */
const SHARE_PER_ANSWER_MAX = 1 / 4
/** What an entry weighs besides its bodies and texts: headers, bookkeeping. */
const ENTRY_BYTES = 1024
/** A text with one character above U+00FF takes so much for each. */
const CHARACTER_BYTES = 2

/** The bytes of an answer in one coding and all headers but those of the single request, as name, value, name, value. */
export type Frame = { readonly bytes: Uint8Array; readonly headers: readonly string[] }

/** A made answer as it is sent. */
export type Answer = {
  /** See `identityOf`: path, resolved input and versions. */
  readonly identity: string
  /** `X-Data-Version`. */
  readonly dataVersion: string
  readonly madeAtMs: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** See `EndpointResult`: sent to the callers that wait for it, and never cached. */
  readonly isProvisional: boolean
  /** What is ready to be sent, by coding. */
  readonly frames: Partial<Record<Coding, Frame>>
  /** Codings under way. */
  readonly compressing: Partial<Record<Coding, Promise<Uint8Array>>>
}

type Flight = { readonly answer: Promise<Answer>; readonly abort: AbortController; waiting: number }

/** Whether an answer is worth compressing. */
export function isCompressible(answer: Answer): boolean {
  return answer.body.byteLength >= COMPRESSED_BYTES_MIN
}

/**
 * The newest answer to each question, bounded in bytes; the least recently asked leave first. An answer whose data
 * have changed stays until its successor is made: it is what is sent when the tables are away.
 */
export class AnswerMemory {
  readonly #answers: LRUCache<string, Answer>
  readonly #flights = new Map<string, Flight>()
  /** Rises when all is dropped: what is under way then is not kept. */
  #generation = 0

  constructor({ bytesMax }: { bytesMax: number }) {
    this.#answers = new LRUCache({
      maxSize: bytesMax,
      maxEntrySize: Math.floor(bytesMax * SHARE_PER_ANSWER_MAX),
      sizeCalculation: (answer, question) => weightOf(question, answer)
    })
  }

  /** Bytes held. */
  get bytes(): number {
    return this.#answers.calculatedSize
  }

  /** The newest answer to a question, of whatever data version. */
  newest(question: string): Answer | undefined {
    return this.#answers.get(question)
  }

  /** Keeps nothing of what there is, or is under way: it may be about somebody who was forgotten. */
  drop(): void {
    this.#generation += 1
    this.#answers.clear()
    this.#flights.clear()
  }

  /** Whether somebody is making this answer already. */
  isUnderWay(identity: string): boolean {
    return this.#flights.has(identity)
  }

  /**
   * Makes an answer and keeps it under its question. Who asks for the same identity meanwhile waits for the same
   * making; it is aborted when all who wait have gone.
   */
  async make(
    question: string,
    identity: string,
    signal: AbortSignal,
    make: (signal: AbortSignal) => Promise<Answer>
  ): Promise<Answer> {
    const flight = this.#flights.get(identity) ?? this.#begin(question, identity, make)
    flight.waiting += 1
    const leave = (): void => {
      flight.waiting -= 1
      if (flight.waiting > 0) return
      this.#land(identity, flight)
      flight.abort.abort(signal.reason)
    }
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
    try {
      return await flight.answer
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  /** The bytes of an answer in a coding. Who asks for them meanwhile waits for the same compressing. */
  async compressed(answer: Answer, coding: Coding): Promise<Uint8Array> {
    if (coding === 'identity') return answer.body
    answer.compressing[coding] ??= compress[coding](answer.body)
    try {
      return await answer.compressing[coding]
    } finally {
      delete answer.compressing[coding]
    }
  }

  /** Keeps a frame with its answer, and counts it in, unless the answer has been replaced or dropped meanwhile. */
  keepFrame(question: string, answer: Answer, coding: Coding, frame: Frame): void {
    answer.frames[coding] = frame
    if (this.#answers.peek(question) !== answer) return
    // The cache weighs a value only when it is another one than before.
    this.#answers.delete(question)
    this.#answers.set(question, answer)
  }

  #begin(question: string, identity: string, make: (signal: AbortSignal) => Promise<Answer>): Flight {
    const abort = new AbortController()
    const generation = this.#generation
    const answer = make(abort.signal)
    const flight: Flight = { answer, abort, waiting: 0 }
    this.#flights.set(identity, flight)
    answer.then(
      (made) => {
        if (!made.isProvisional && generation === this.#generation) this.#answers.set(question, made)
        this.#land(identity, flight)
      },
      () => this.#land(identity, flight)
    )
    return flight
  }

  #land(identity: string, flight: Flight): void {
    if (this.#flights.get(identity) === flight) this.#flights.delete(identity)
  }
}

/** The question and the identity hold what the client sent: without them, many long names would be counted 20 times too small. */
function weightOf(question: string, answer: Answer): number {
  const { gzip: gzipped, br } = answer.frames
  const texts = (question.length + answer.identity.length) * CHARACTER_BYTES
  return ENTRY_BYTES + texts + answer.body.byteLength + (gzipped?.bytes.byteLength ?? 0) + (br?.bytes.byteLength ?? 0)
}

const gzipBytes = promisify<Uint8Array, object, Uint8Array>(gzip)
const brotliBytes = promisify<Uint8Array, object, Uint8Array>(brotliCompress)

/** Made once and sent many times, but on the first caller's time: the middle of both scales. */
const compress = {
  gzip: (bytes: Uint8Array) => gzipBytes(bytes, { level: 6 }),
  br: (bytes: Uint8Array) =>
    brotliBytes(bytes, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength }
    })
} as const
