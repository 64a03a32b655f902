import type { WriteChange } from '@gamenet/schemas'
import type { z } from 'zod'
import type { ReadTables } from '../read-tables.js'
import type { ChatPlatform } from '../remote/chat-platform.js'
import type { Session } from '../session/sessions.js'
import type { WriteTransactions } from '../write-side.js'
import type { RatingWriter } from '../writes/rating.js'

/*
 * action   one route by which a user changes something, as a value: what it takes, who may, what is done
 */

/** What doing it may look at and change. */
export type ActionContext = {
  /** Who does it. */
  readonly session: Session
  readonly writes: WriteTransactions
  readonly ratings: RatingWriter
  readonly tables: ReadTables
  readonly chat: ChatPlatform
  /** Ends what takes too long, from when it is asked for. */
  signal(): AbortSignal
  /** The clock, milliseconds since 1970. */
  readonly nowMs: number
  /** Called with everything that was changed, once it is kept: who reads next, reads no older answer. */
  changed(change: WriteChange): void
}

/**
 * One action as data; the mechanism adds the session, the errors of parameters and body, and the description at
 * /openapi.json. Write it as `const x: Action<Parameters, Body> = { … }`.
 */
export type Action<Parameters = unknown, Body = unknown> = {
  /** camelCase, unique: the name of the SDK's method. */
  readonly operationId: string
  /** With parameters as `:name`. */
  readonly path: string
  /** All of them do the same. */
  readonly methods: readonly [Method, ...Method[]]
  readonly tags: readonly string[]
  readonly summary: string
  readonly description: string
  /** An object of path parameters made with `http/parameters.ts`. */
  readonly parameters: z.ZodType<Parameters>
  /** An object of fields made with `http/body.ts`; `sessionKey` is taken out before. */
  readonly body: z.ZodType<Body>
  /** A body that it takes. */
  readonly bodyExample: unknown
  /** Refuses whom it is not for, before anything else of the request is judged. */
  permit?(parameters: Readonly<Record<string, unknown>>, session: Session): void
  /** Does it; gives the body of the answer. Throws a `Refusal`, and then nothing is changed. */
  act(parameters: Parameters, body: Body, context: ActionContext): Promise<unknown>
  /** The 200 body; say `.meta({ description })`. */
  readonly response: z.ZodType
  readonly example: unknown
  /** The sentence of each further refusal that a caller can meet, by status. */
  readonly refuses?: Readonly<Record<number, string>>
}

type Method = 'POST' | 'PATCH' | 'PUT'
