import type {
  ReaderPosition,
  RefusalCode,
  ScrapeSource,
  WriteChange,
  WriteSide,
  WriteTransactions
} from '@gamenet/schemas'
import type { z } from 'zod'
import type { Boards } from '../queries/board-descriptions.js'
import type { Catalog } from '../queries/catalog.js'
import type { ReadTables } from '../read-tables.js'
import type { ChatPlatform } from '../remote/chat-platform.js'
import type { Session } from '../session/sessions.js'
import type { RatingWriter } from '../writes/rating.js'
import type { Table } from './table.js'

/*
 * endpoint     a route that reads, as a value: its input, the data that its answer reads, how the answer is computed
 * action       a route that writes, as a value: its input, who may use it, what it does
 * input        path parameters and query, parsed; of a POST, path parameters and body
 * resolved     everything that determines the answer: absolute windows, ids, widths; never the clock itself
 * dependency   a span of a projection that the answer reads
 * data version the newest change of what an answer reads; opaque to callers
 */

/** The common part of both kinds of routes, mostly for the description at /openapi.json. */
type Route = {
  /** camelCase, unique: the name of the SDK's method. */
  readonly operationId: string
  /** With parameters as `:name`, such as `/api/game/:game`. */
  readonly path: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  /** The 200 body; add `.meta({ description })`. Its example is made of the names of its fields. */
  readonly response: z.ZodType
  /** A valid request body, for routes that have one. */
  readonly bodyExample?: unknown
  /** Its refusals in addition to those that follow from its parameters, body and session. */
  readonly refuses?: readonly RefusalCode[]
}

/** Returns the names of a path's parameters. */
export const pathParameters = (path: string): ReadonlySet<string> => new Set(path.match(/(?<=:)\w+/g))

/**
 * A route that reads. The pipeline adds parameter errors, ETag, 304, the cache, compression, HEAD, OPTIONS, 405 and the
 * description at /openapi.json. Write it as `const x: Endpoint<Input, Resolved> = { … }`.
 */
export type Endpoint<Input = unknown, Resolved = unknown> = Route & {
  /** GET when absent. POST is for queries that do not fit into a URL: the same answers, without ETag and HEAD. */
  readonly method?: 'POST'
  /**
   * An object of parameters from `request/parameters.ts`, or of fields from `request/body.ts`. A path
   * parameter overrides anything else of its name.
   */
  readonly input: z.ZodType<Input> & Pick<z.ZodObject, 'shape'>
  /** Input → everything that determines the answer; its JSON becomes part of ETag and cache key. Throws a `Refusal`. */
  resolve(input: Input, context: ResolveContext): Promise<Resolved> | Resolved
  /** The data that the answer reads. A change of data that is missing here does not invalidate the answer. */
  reads(resolved: Resolved): readonly Dependency[]
  /** Whether the ETag is made of the bytes: most changes of the data that are read do not change such an answer. */
  isTaggedByContent?(resolved: Resolved): boolean
  /** Headers that follow only from `resolved` (`X-Resolution-Seconds`): a 304 has them too, without a query. */
  headers?(resolved: Resolved): Readonly<Record<string, string>>
  /** How the answer becomes rows, if it is a list: it is then also available in file formats. */
  readonly table?: Table<Resolved>
  /** Runs on a cache miss. */
  answer(resolved: Resolved, context: AnswerContext): Promise<EndpointResult>
  /**
   * The answer for a viewer with a valid session: computed for each request and not cached. Without this function
   * sessions are ignored. A session never makes the difference between an answer and a refusal.
   */
  answerTo?(resolved: Resolved, viewer: Session, context: AnswerContext): Promise<EndpointResult>
  /** Response headers to describe besides the common ones: name → description. */
  readonly responseHeaders?: Readonly<Record<string, string>>
  readonly deprecated?: { readonly since: Date; successor(input: Input): string }
}

/** An answer: a value (stringified once) or ready bytes of JSON, and headers that follow from the data. */
export type EndpointResult = {
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** True when the same query may have another answer at the same data version: sent without ETag, not cached. */
  readonly isProvisional?: boolean
}

/** The data that an answer reads. Without a key: every key; without bounds: all. Half-open, milliseconds since 1970. */
export type Dependency = {
  /** The projection's name, as `data_change` has it. */
  readonly projection: string
  readonly key?: string
  readonly fromMs?: number
  readonly toMs?: number
}

/** The configured seconds between scrapes, by source; 0: it is not scraped. */
export type PeriodSeconds = Readonly<Partial<Record<ScrapeSource, number>>>

/** The context in which an input is resolved. */
export type ResolveContext = {
  /** The clock, milliseconds since 1970. Values derived from it must be the same for a whole minute: see `window`. */
  readonly nowMs: number
  /** The greatest age of a title's newest list at which its matches are open. */
  readonly openListAgeMs: number
  /** Seconds between scrapes of each source. Default: unknown. */
  readonly periodSeconds?: PeriodSeconds
  /** Progress of a history that is being loaded, 0 to 99; undefined when there is none. */
  readonly historyPercent?: number | undefined
  /** The titles at the newest known change; while the tables are busy or unavailable, possibly older. */
  catalog(): Promise<Catalog>
}

/** Returns the greatest age of an open list: ten minutes, or three periods of the scrape if longer. */
export const openListAge = (periodSeconds = 60): number => Math.max(10 * 60_000, 3 * periodSeconds * 1000)

/** Computes the reigns of a board's record from its states: a row of `record_history` from one of `knownStates`. */
export type FoldRecords = (board: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>

/** The context in which an answer is computed. Queries are aborted when every client has disconnected. */
export type AnswerContext = {
  readonly tables: ReadTables
  /** Reads the positions of readers of the log in these tables. */
  positions(names: readonly string[]): Promise<readonly ReaderPosition[]>
  /** Where endpoints are answered in a service. */
  readonly foldRecords?: FoldRecords | undefined
  /** Profiles and ratings. */
  readonly writes: Pick<WriteSide, 'query'>
  readonly signal: AbortSignal
  /** The titles at the newest known change. */
  catalog(): Promise<Catalog>
  /** The descriptions of boards at the newest known change. */
  boards(): Promise<Boards>
  /** The instant of the last complete scrape of the page of players, at the newest known change. */
  playersCheckedMs(): Promise<number | null>
}

/**
 * A route that writes. The pipeline adds the session, errors of parameters and body, the write budget, and the
 * description at /openapi.json. Write it as `const x: Action<Parameters, Body> = { … }`.
 */
export type Action<Parameters = unknown, Body = unknown> = Route & {
  readonly method: 'POST' | 'PATCH' | 'PUT'
  readonly description: string
  /** An object of path parameters from `request/parameters.ts`. */
  readonly parameters: z.ZodType<Parameters> & Pick<z.ZodObject, 'shape'>
  /** An object of fields from `request/body.ts`; `sessionKey` is removed before. */
  readonly body: z.ZodType<Body> & Pick<z.ZodObject, 'extend'>
  readonly bodyExample: unknown
  /** Throws a `Refusal` for users who may not do this, before parameters and body are validated. */
  permit?(parameters: Readonly<Record<string, unknown>>, session: Session): void
  /** Does it and returns the body of the answer. After a thrown `Refusal` nothing has changed. */
  act(parameters: Parameters, body: Body, context: ActionContext): Promise<unknown>
}

/** The context of an action. */
export type ActionContext = {
  /** The session of the user who acts. */
  readonly session: Session
  readonly writes: WriteTransactions
  readonly ratings: RatingWriter
  readonly tables: ReadTables
  readonly chat: ChatPlatform
  /** A signal with a timeout that begins at the call. */
  signal(): AbortSignal
  /** The clock, milliseconds since 1970. */
  readonly nowMs: number
  /** Called with each committed change, so that no later answer is older than it. */
  changed(change: WriteChange): void
}
