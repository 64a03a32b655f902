import type { Ingest, People } from '@gamenet/ingest'
import type { Projector } from '@gamenet/projector'
import { z } from 'zod'
import type { Demo } from '../../demo/demo.js'
import type { Engines } from '../wiring/engines.js'
import type { LostRows } from '../wiring/lost-rows.js'
import type { SpoolingLog } from '../wiring/spooling-log.js'

/**
 * One thing that operators can do with a service. The operator port, its client and calls in the process itself are derived
 * from this declaration. A module that declares one imports schemas only: commands load it, and loading the engines costs
 * half a second of processor time. `run` imports what it needs.
 */
export type Operation<Input, Progress, Result> = {
  /** A noun, as refusals and the service's log print it. */
  readonly name: string
  readonly method: 'GET' | 'POST'
  /** On the operator port. `:field` is a field of the input; all others are in the body or in the query. */
  readonly path: string
  readonly input: z.ZodType<Input>
  /** What the refusal of an invalid input says. */
  readonly inputRule?: string
  readonly body?: OperationBody
  /** Present where a run takes long: clients that accept NDJSON get lines of progress, then the result or the error. */
  readonly progress?: z.ZodType<Progress>
  readonly result: z.ZodType<Result>
  /** Refused in a process that does not know the log. */
  readonly needsLog?: boolean
  /** The part of the process whose stop ends a run. All other runs are awaited at a stop, and end by `needs.stopping`. */
  readonly endsWith?: 'ingest' | 'projector'
  run(needs: OperationNeeds, input: Input, context: RunContext<Progress>): Promise<NoInfer<Result>>
}

/** `json`: all fields that are not in the path. `text` and `stream`: one field, as it is. Always application/octet-stream. */
export type OperationBody =
  | { readonly as: 'json'; readonly bytesMax: number }
  | { readonly as: 'text'; readonly field: string; readonly bytesMax: number }
  | { readonly as: 'stream'; readonly field: string }

export type RunContext<Progress> = {
  readonly onProgress: (progress: Progress) => void
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
}

/** The operations of one service: this process, or a running service over its operator port. */
export type Operations = {
  /** Rejects with a `UsageError` or a `FailureError` where it cannot be done. */
  run<Input, Progress, Result>(
    operation: Operation<Input, Progress, Result>,
    input: NoInfer<Input>,
    context?: Partial<RunContext<NoInfer<Progress>>>
  ): Promise<Result>
}

/** The parts of a process that operations use. */
export type OperationNeeds = {
  readonly engines: Engines
  /** False in an API process, which does not know the log. */
  readonly hasLog: boolean
  /** False where a command has opened the engines of a stopped service: nothing else reads or writes them. */
  readonly isRunning: boolean
  readonly projector: Projector | undefined
  /** Resolves when all steps that write rows and have begun by now, in all processes, have ended. */
  readonly stepsEnded: () => Promise<void>
  readonly inStep: Projector['inStep']
  readonly ingest: Ingest | undefined
  readonly people: People
  readonly demo: Demo | undefined
  readonly spooling: SpoolingLog | undefined
  readonly lostRows: Pick<LostRows, 'status' | 'repairing'>
  /** Reads what has changed in the tables, for the answers of this process. */
  readonly onChange: () => Promise<unknown>
  /** Migrations that were applied when the engines were opened; the first `migrate` reports them. */
  readonly applied: string[]
  readonly startedAt: string
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal
  /** Ids of the imports that this process publishes now. */
  readonly importing: Set<string>
}

/** Infers the types of a declaration. */
export function operation<Input, Progress, Result>(
  declared: Operation<Input, Progress, Result>
): Operation<Input, Progress, Result> {
  return declared
}

/** The input of an operation that has none. */
export const NoInput = z.strictObject({})
/** A boolean in a query. */
export const Flag = z.enum(['true', 'false']).transform((text) => text === 'true')
/** As answers write it: ISO 8601. */
export const Instant = z.string()

/** The media type of answers with progress: lines of JSON. */
export const LINES = 'application/x-ndjson'
/** The media type of request bodies. A web page cannot send it to another site without asking first. */
export const OCTETS = 'application/octet-stream'
