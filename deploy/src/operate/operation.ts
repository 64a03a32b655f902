import type { changedAnswers, Readiness } from '@gamenet/api'
import type { Ingest, People } from '@gamenet/ingest'
import type { ComparedTables, Projector, SwapDifference } from '@gamenet/projector'
import { z } from 'zod'
import type { Demo } from '../../demo/demo.js'
import type { Steps } from '../stores/concurrent-writers.js'
import type { TableDamage } from '../stores/damaged-tables.js'
import type { Engines } from '../stores/engines.js'
import type { SpoolingLog } from '../stores/spooling-log.js'

/**
 * One operation of a service. The operator port, its client and calls in the process are derived from this declaration.
 * A module with a declaration imports schemas only: commands load it, and loading the engines costs half a second of
 * processor time. `run` imports what it needs.
 */
export type Operation<Input, Progress, Result> = {
  /** A noun for refusals and the service's log. */
  readonly name: string
  /**
   * Method and path on the operator port. `:field` is a field of the input; all others are in the body or in the query.
   */
  readonly route: `${'GET' | 'POST'} /${string}`
  readonly input: z.ZodType<Input>
  /** The refusal of an invalid input. */
  readonly inputRule?: string
  readonly body?: OperationBody
  /** Present if a run takes long: clients that accept NDJSON get lines of progress, then the result or the error. */
  readonly progress?: z.ZodType<Progress>
  readonly result: z.ZodType<Result>
  /** Refused in a process without access to the log. */
  readonly needsLog?: boolean
  /**
   * The part of the process whose stop ends a run. All other runs end by `needs.stopping` and are awaited at a stop.
   */
  readonly endsWith?: 'ingest' | 'projector'
  run(needs: OperationNeeds, input: Input, context: RunContext<Progress>): Promise<NoInfer<Result>>
}

/** `json`: all fields that are not in the path. `text` and `stream`: one raw field. Always application/octet-stream. */
export type OperationBody =
  | { readonly as: 'json'; readonly bytesMax: number }
  | { readonly as: 'text'; readonly field: string; readonly bytesMax: number; readonly isOptional?: boolean }
  | { readonly as: 'stream'; readonly field: string }

export type RunContext<Progress> = {
  readonly onProgress: (progress: Progress) => void
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
}

/** The operations of one service: of this process, or of a running service over its operator port. */
export type Operations = {
  /** Rejects with a `UsageError` or a `FailureError` if it is refused. */
  run<Input, Progress, Result>(
    operation: Operation<Input, Progress, Result>,
    input: NoInfer<Input>,
    context?: Partial<RunContext<NoInfer<Progress>>>
  ): Promise<Result>
}

/** What only this process knows of itself, for `gamenet status` and `gamenet doctor`. */
export type ProcessState = {
  readonly demo: Demo | undefined
  readonly spool: SpoolingLog | undefined
  readonly damageMet: Set<string>
  readonly ready: () => Promise<Readiness>
  /** Name → a check of its settings, which returns a sentence or rejects with what to do. */
  readonly checks: Readonly<Record<string, () => Promise<string>>>
}

/** The parts of a process that operations use. */
export type OperationNeeds = {
  readonly engines: Engines
  /** False in an API process, which has no access to the log. */
  readonly hasLog: boolean
  /** False if a command has opened the engines of a stopped service: nothing else reads or writes them. */
  readonly isRunning: boolean
  readonly projector: Projector | undefined
  readonly steps: Steps
  readonly ingest: Ingest | undefined
  readonly people: People
  readonly damage: Pick<TableDamage, 'status' | 'setAside' | 'tables'>
  readonly state: ProcessState
  /** Returns the answers that differ between the tables of a comparison. */
  readonly changedAnswers: (difference: SwapDifference, tables: ComparedTables) => Promise<ChangedAnswers>
  /** Reads the changes of the tables for the answers of this process. */
  readonly onChange: () => Promise<unknown>
  /** Migrations that were applied when the engines were opened; the first `migrate` reports them. */
  readonly applied: string[]
  /** Completes pending erasures in the background, if a service runs. */
  readonly finishErasures: () => void
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal
  /** The imports that this process is publishing, by id: the share that was read. */
  readonly importing: Map<string, number>
}

export type ChangedAnswers = Awaited<ReturnType<typeof changedAnswers>>

/** Infers the types of a declaration. */
export function operation<Input, Progress, Result>(
  declared: Operation<Input, Progress, Result>
): Operation<Input, Progress, Result> {
  return declared
}

/** The empty input. */
export const NoInput = z.strictObject({})
/** A boolean in a query. */
export const Flag = z.enum(['true', 'false']).transform((text) => text === 'true')
/** An ISO 8601 instant in an answer. */
export const Instant = z.string()

/** The media type of answers with progress: lines of JSON. */
export const LINES = 'application/x-ndjson'
/** The media type of request bodies. A web page cannot send it to another site without a preflight request. */
export const OCTETS = 'application/octet-stream'
