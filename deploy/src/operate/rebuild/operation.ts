import {
  RebuildPlan,
  RebuildRefused,
  RebuildStatus,
  type Rebuilds,
  SwapDifference,
  SwapReport,
  VerifyReport
} from '@gamenet/projector/rebuild'
import { parseJson } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError, UsageError } from '../../config.js'
import { Flag, NoInput, type OperationBody, type OperationNeeds, operation } from '../operation.js'

const Count = z.int()

/** What a swap changes: rows by subject, and answers. */
export const Preview = SwapDifference.extend({
  /** Those with the greatest effect first: records, then ranks, peaks and unlocks. */
  answers: z
    .array(
      z.object({
        endpoint: z.string(),
        key: z.string(),
        url: z.string(),
        /** Rows that differ of what it reads. */
        effect: z.object({ records: Count, ranks: Count, peaks: Count, unlocks: Count, others: Count })
      })
    )
    .readonly(),
  /** Answers that were computed from both tables. */
  compared: Count,
  /** False if there are more answers, or subjects, than a preview compares. */
  isComplete: z.boolean()
})
export type Preview = z.infer<typeof Preview>

/** Of 20,000 subjects and 20,000 answers with long names. */
const PREVIEW_BYTES_MAX = 64 * 1024 * 1024

const Target = z.strictObject({ projection: z.string() })
/** Events per second. */
const Rate = z.coerce.number().int().nonnegative()

/** Rebuilds of projections, by the commands of `gamenet rebuild`. */
export const rebuild = {
  list: operation({
    name: 'list of rebuilds',
    route: 'GET /rebuilds',
    input: NoInput,
    result: z.array(RebuildStatus),
    endsWith: 'projector',
    run: (needs) => answered(needs, (rebuilds) => rebuilds.list())
  }),
  plan: action('plan', {
    input: Target.extend({ isFromLog: Flag.exactOptional() }),
    result: RebuildPlan,
    run: (rebuilds, { projection, ...options }) => rebuilds.plan(projection, options)
  }),
  start: action('start', {
    input: Target.extend({
      until: z.string().exactOptional(),
      recordedUntil: z.string().exactOptional(),
      isFromLog: Flag.exactOptional(),
      rate: Rate.pipe(z.number().positive()).exactOptional(),
      key: z.string().exactOptional()
    }),
    result: RebuildStatus,
    isFilling: true,
    run: (rebuilds, { projection, ...options }) => rebuilds.start(projection, options)
  }),
  rate: action('rate', {
    input: Target.extend({ rate: Rate }),
    result: RebuildStatus,
    run: (rebuilds, { projection, rate }) => rebuilds.rate(projection, rate)
  }),
  pause: changed('pause'),
  resume: action('resume', {
    input: Target,
    result: RebuildStatus,
    isFilling: true,
    run: (rebuilds, { projection }) => rebuilds.resume(projection)
  }),
  cancel: changed('cancel'),
  verify: action('verify', {
    input: Target,
    result: VerifyReport,
    run: (rebuilds, { projection }) => rebuilds.verify(projection)
  }),
  preview: action('preview', {
    input: Target.extend({ key: z.string().exactOptional() }),
    result: Preview,
    isFilling: true,
    run: (rebuilds, { projection, ...options }, { changedAnswers }) =>
      rebuilds.preview(projection, options, async (difference, tables) => ({
        ...difference,
        ...(await changedAnswers(difference, tables))
      }))
  }),
  swap: action('swap', {
    input: Target.extend({ acceptDifferences: Flag.exactOptional(), expect: z.string().exactOptional() }),
    body: { as: 'text', field: 'expect', bytesMax: PREVIEW_BYTES_MAX, isOptional: true },
    result: SwapReport,
    run: async (rebuilds, { projection, expect, ...options }) => {
      const expected = expect === undefined ? {} : { expected: previewIn(expect) }
      return await rebuilds.swap(projection, { ...options, ...expected })
    }
  }),
  rollback: action('rollback', {
    input: Target,
    result: SwapReport,
    run: (rebuilds, { projection }) => rebuilds.rollback(projection)
  }),
  drop: changed('drop')
}

/** Returns the preview in the text of a file. */
function previewIn(text: string): Preview {
  const parsed = Preview.safeParse(parseJson(text))
  if (parsed.success) return parsed.data
  throw new UsageError(
    `The file of --expect is not a preview (${z.prettifyError(parsed.error).split('\n', 2).join('')}). Make one: ` +
      'gamenet rebuild preview <projection> --json > FILE.'
  )
}

/** An action without options that changes the state of a rebuild. */
function changed(verb: 'pause' | 'cancel' | 'drop') {
  return action(verb, {
    input: Target,
    result: RebuildStatus,
    run: (rebuilds, { projection }) => rebuilds[verb](projection)
  })
}

/** `POST /rebuilds/<projection>/<verb>`, options in the query. */
function action<Input extends { readonly projection: string }, Result>(
  verb: Exclude<keyof Rebuilds, 'list'>,
  declared: {
    readonly input: z.ZodType<Input>
    readonly result: z.ZodType<Result>
    readonly body?: OperationBody
    /** Refused on a low disk. */
    readonly isFilling?: boolean
    readonly run: (rebuilds: Rebuilds, input: NoInfer<Input>, needs: OperationNeeds) => Promise<NoInfer<Result>>
  }
) {
  const { input, result, body, isFilling = false, run } = declared
  return operation({
    name: `rebuild ${verb}`,
    route: `POST /rebuilds/:projection/${verb}`,
    input,
    ...(body === undefined ? {} : { body }),
    inputRule:
      'The query takes until, recordedUntil, isFromLog, rate, key and acceptDifferences like the options of gamenet ' +
      'rebuild: a flag is true or false, a rate is a whole number of events per second, from 1 at the start',
    result,
    endsWith: 'projector',
    run: async (needs, given) => {
      if (isFilling) await needs.engines.disk.requireSpace(0, `The rebuild of ${given.projection}`)
      return await answered(needs, (rebuilds) => run(rebuilds, given, needs))
    }
  })
}

/** Turns refusals of the projector into sentences with an exit code. */
async function answered<Answer>(
  { projector }: Pick<OperationNeeds, 'projector'>,
  ask: (rebuilds: Rebuilds) => Promise<Answer>
): Promise<Answer> {
  if (projector === undefined) throw notProjecting()
  try {
    return await ask(projector.rebuilds)
  } catch (error) {
    if (!(error instanceof RebuildRefused)) throw error
    throw error.isUsage ? new UsageError(error.message) : new FailureError(error.message)
  }
}

export function notProjecting(): UsageError {
  return new UsageError(
    'No projector was asked: set OPERATOR_URL to the operator port of gamenet start or projector, and OPERATOR_TOKEN ' +
      'to its token.'
  )
}
