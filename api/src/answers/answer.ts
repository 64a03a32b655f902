import type { z } from 'zod'
import type { Boards } from '../queries/board-cache.js'
import type { Catalog } from '../queries/catalog.js'
import type { ReadTables } from '../read-tables.js'
import type { Session } from '../session/sessions.js'
import type { WriteSide } from '../write-side.js'

/*
 * endpoint     one route that reads, as a value: what it takes, what its answer is made of, how it is asked for
 * input        path parameters and query, parsed; of a question that is posted, path parameters and body
 * resolved     everything that determines the answer: absolute windows, ids, widths; never the clock itself
 * dependency   a stretch of a projection that the answer reads
 * data version the newest change of what an answer reads; opaque to callers
 */

/** What an answer reads. Without a key: every key; without bounds: everything. Half-open, milliseconds since 1970. */
export type Dependency = {
  /** The projection's name, as `data_change` has it. */
  readonly projection: string
  readonly key?: string
  readonly fromMs?: number
  readonly toMs?: number
}

/** What resolving an input may look at. */
export type ResolveContext = {
  /** The clock, milliseconds since 1970. What is made of it must be the same all minute long: see `window`. */
  readonly nowMs: number
  /** How old the newest list of a title may be for its matches to be open. */
  readonly openListAgeMs: number
  /** The titles, as the newest known change left them; while the tables are busy or away, as they were before. */
  catalog(): Promise<Catalog>
}

/** What making an answer may look at. The tables' queries end when every caller has gone. */
export type AnswerContext = {
  readonly tables: ReadTables
  /** What users say of themselves and of one another. */
  readonly writes: Pick<WriteSide, 'query'>
  readonly signal: AbortSignal
  /** The titles, as the newest known change left them. */
  catalog(): Promise<Catalog>
  /** What lists say of boards, as the newest known change left it. */
  boards(): Promise<Boards>
  /** When the page of players was last read whole, as the newest known change left it. */
  playersCheckedMs(): Promise<number | null>
}

/** A made answer: a value (stringified once) or ready bytes of JSON, and headers that only the making could know. */
export type EndpointResult = {
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** True when the same question may have another answer before its data version moves: sent without ETag, not kept. */
  readonly isProvisional?: boolean
}

/**
 * One endpoint as data; the mechanism adds parameters' errors, ETag, 304, memory, compression, HEAD, OPTIONS, 405 and
 * the description at /openapi.json. Write it as `const x: Endpoint<Input, Resolved> = { … }`.
 */
export type Endpoint<Input = unknown, Resolved = unknown> = {
  /** camelCase, unique: the name of the SDK's method. */
  readonly operationId: string
  /** With parameters as `:name`, such as `/api/game/:game`. */
  readonly path: string
  /** GET unless given. POST is for questions that do not fit into a URL: the same answers, without ETag and HEAD. */
  readonly method?: 'POST'
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  /**
   * An object of parameters made with `http/parameters.ts`, of a body made with `http/body.ts`; a path parameter wins
   * over what else has its name.
   */
  readonly input: z.ZodType<Input>
  /** Input → all that determines the answer; its JSON becomes part of ETag and memory key. Throws a `Refusal`. */
  resolve(input: Input, context: ResolveContext): Promise<Resolved> | Resolved
  /** What the answer reads. Whatever is left out here can change without anybody noticing. */
  reads(resolved: Resolved): readonly Dependency[]
  /** Headers that follow from `resolved` alone (`X-Resolution-Seconds`): a 304 carries them too, without a query. */
  headers?(resolved: Resolved): Readonly<Record<string, string>>
  /** Runs when no memory has the answer. */
  answer(resolved: Resolved, context: AnswerContext): Promise<EndpointResult>
  /**
   * The answer for one who shows a good session: made for them alone, each time, and kept nowhere. Absent: sessions are
   * not looked at. A session never makes the difference between an answer and a refusal here.
   */
  answerTo?(resolved: Resolved, viewer: Session, context: AnswerContext): Promise<EndpointResult>
  /** The 200 body; say `.meta({ description })`. */
  readonly response: z.ZodType
  readonly example: unknown
  /** Of a POST: a body that it takes. */
  readonly bodyExample?: unknown
  /** Response headers worth describing beside the common ones: name → description. */
  readonly responseHeaders?: Readonly<Record<string, string>>
  /** The sentence of each further refusal that a caller can meet, by status: `{ 404: 'The title is not known.' }`. */
  readonly refuses?: Readonly<Record<number, string>>
  readonly deprecated?: { readonly since: Date; successor(input: Input): string }
}
