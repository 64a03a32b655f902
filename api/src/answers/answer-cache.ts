import { LRUCache } from 'lru-cache'
import type { Coding } from '../request/etag.js'
import { compress } from './compression.js'

/** Maximum share of the cache for one answer; a larger one is sent but not cached. */
const SHARE_PER_ANSWER_MAX = 1 / 4
/** Size of an entry without bodies and texts: headers and bookkeeping. */
const ENTRY_BYTES = 1024
/** Bytes per character of a string that has a character above U+00FF. */
const CHARACTER_BYTES = 2

/**
 * The body of an answer in one coding, and all headers except those of the single request, as name, value, name, value.
 */
export type Frame = { readonly bytes: Uint8Array; readonly headers: readonly string[] }

/** An answer as it is sent and cached. */
export type Answer = {
  /** See `identityOf`: path, resolved input and versions. */
  readonly identity: string
  /** `X-Data-Version`. */
  readonly dataVersion: string
  readonly createdAtMs: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** See `EndpointResult`: sent to the callers that wait for it, and never cached. */
  readonly isProvisional: boolean
  /** Bodies with headers that are ready to send, by coding. */
  readonly frames: Partial<Record<Coding, Frame>>
  /** Compressions in progress. */
  readonly compressing: Partial<Record<Coding, Promise<Uint8Array>>>
}

type PendingAnswer = { readonly answer: Promise<Answer>; readonly abort: AbortController; waiting: number }

/**
 * LRU cache of the newest answer to each question, bounded in bytes. An answer stays after its data have changed, until
 * its successor replaces it: it is served with its age while the tables are unavailable.
 */
export class AnswerCache {
  readonly #answers: LRUCache<string, Answer>
  readonly #pending = new Map<string, PendingAnswer>()
  /** Incremented by `clear`: an answer whose computation began before is not cached. */
  #generation = 0

  constructor({ bytesMax }: { bytesMax: number }) {
    this.#answers = new LRUCache({
      maxSize: bytesMax,
      maxEntrySize: Math.floor(bytesMax * SHARE_PER_ANSWER_MAX),
      sizeCalculation: (answer, question) => weightOf(question, answer)
    })
  }

  /** Size in bytes. */
  get bytes(): number {
    return this.#answers.calculatedSize
  }

  /** Returns the newest answer to a question, of any data version. */
  newest(question: string): Answer | undefined {
    return this.#answers.get(question)
  }

  /** Removes all answers, those in progress too: they may contain data of an erased user. */
  clear(): void {
    this.#generation += 1
    this.#answers.clear()
    this.#pending.clear()
  }

  /** Returns whether this answer is being computed. */
  isPending(identity: string): boolean {
    return this.#pending.has(identity)
  }

  /**
   * Computes an answer and caches it under its question. Concurrent calls with the same identity share one computation,
   * which is aborted when the signals of all of them have fired.
   */
  async make(
    question: string,
    identity: string,
    signal: AbortSignal,
    make: (signal: AbortSignal) => Promise<Answer>
  ): Promise<Answer> {
    const pending = this.#pending.get(identity) ?? this.#begin(question, identity, make)
    pending.waiting += 1
    const leave = (): void => {
      pending.waiting -= 1
      if (pending.waiting > 0) return
      this.#settle(identity, pending)
      pending.abort.abort(signal.reason)
    }
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
    try {
      return await pending.answer
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  /** Returns the bytes of an answer in a coding. Concurrent calls share one compression. */
  async compressed(answer: Answer, coding: Coding): Promise<Uint8Array> {
    if (coding === 'identity') return answer.body
    answer.compressing[coding] ??= compress[coding](answer.body)
    try {
      return await answer.compressing[coding]
    } finally {
      delete answer.compressing[coding]
    }
  }

  /** Adds a frame to its answer, and its size to the cache unless the answer has been replaced or removed. */
  addFrame(question: string, answer: Answer, coding: Coding, frame: Frame): void {
    answer.frames[coding] = frame
    if (this.#answers.peek(question) !== answer) return
    // The LRU cache recomputes a size only for a different value.
    this.#answers.delete(question)
    this.#answers.set(question, answer)
  }

  #begin(question: string, identity: string, make: (signal: AbortSignal) => Promise<Answer>): PendingAnswer {
    const abort = new AbortController()
    const generation = this.#generation
    const answer = make(abort.signal)
    const pending: PendingAnswer = { answer, abort, waiting: 0 }
    this.#pending.set(identity, pending)
    answer.then(
      (result) => {
        if (!result.isProvisional && generation === this.#generation) this.#answers.set(question, result)
        this.#settle(identity, pending)
      },
      () => this.#settle(identity, pending)
    )
    return pending
  }

  #settle(identity: string, pending: PendingAnswer): void {
    if (this.#pending.get(identity) === pending) this.#pending.delete(identity)
  }
}

/**
 * Includes question and identity, which contain the client's input: without them, long names would make the size 20
 * times too small.
 */
function weightOf(question: string, answer: Answer): number {
  const { gzip: gzipped, br } = answer.frames
  const texts = (question.length + answer.identity.length) * CHARACTER_BYTES
  return ENTRY_BYTES + texts + answer.body.byteLength + (gzipped?.bytes.byteLength ?? 0) + (br?.bytes.byteLength ?? 0)
}
