import type { Target } from '@gamenet/projector'
import { abortedAfter, errorMessage, headsOf, type LogExtents, Refusal } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError } from '../../config.js'
import { type OperationNeeds, operation } from '../operation.js'

/** Longest wait for the tables to catch up. */
export const CAUGHT_UP_SECONDS_MAX = 86_400

export const CaughtUpReport = z.object({
  /** False after a timeout. */
  caughtUp: z.boolean(),
  waitedMs: z.int(),
  /** What still lagged at the timeout. */
  behind: z.array(z.string())
})
export type CaughtUpReport = z.infer<typeof CaughtUpReport>

/** Waits until the tables contain everything that the log held at the call, or until the timeout. */
export const caughtUp = operation({
  name: 'wait for the tables',
  route: 'GET /caught-up',
  input: z.strictObject({ seconds: z.coerce.number().min(0).max(CAUGHT_UP_SECONDS_MAX) }),
  inputRule: `seconds must be a number from 0 to ${CAUGHT_UP_SECONDS_MAX}`,
  result: CaughtUpReport,
  needsLog: true,
  run: (needs, { seconds }) => waitUntilCaughtUp(needs, seconds * 1000)
})

type CatchUpNeeds = Pick<OperationNeeds, 'projector' | 'onChange' | 'stopping'> & {
  readonly engines: Pick<OperationNeeds['engines'], 'store' | 'log'>
}

/**
 * Waits for the events that the log holds at the call, of these topics or of all.
 * A projector knows which partitions are stalled and why; any other process reads the checkpoints.
 */
async function waitUntilCaughtUp(
  { engines, projector, onChange, stopping }: CatchUpNeeds,
  timeoutMs: number,
  topics?: readonly string[]
): Promise<CaughtUpReport> {
  const begun = performance.now()
  const signal = abortedAfter(timeoutMs, stopping)
  const targets = topics === undefined ? undefined : await targetsAtHeads(engines.log, topics)
  const { waitForCheckpoints } = await import('@gamenet/projector')
  const caughtUp =
    projector === undefined
      ? waitForCheckpoints({ store: engines.store, log: engines.log }, signal, targets)
      : projector.caughtUp({ signal, standstillMs: timeoutMs, ...(targets === undefined ? {} : { targets }) })
  const behind = await caughtUp.then(
    () => [],
    (error: unknown) => {
      if (error instanceof Refusal) throw error
      return [errorMessage(error).replace(/\.$/, '')]
    }
  )
  // Afterwards the answers of this process are current, too. A failed read is repeated in the background.
  if (behind.length === 0) await onChange().catch(() => undefined)
  return { caughtUp: behind.length === 0, waitedMs: Math.round(performance.now() - begun), behind }
}

/** {@link waitUntilCaughtUp}, with an error that begins with `failure` if it does not succeed. */
export async function requireCaughtUp(
  needs: CatchUpNeeds,
  failure: string,
  ...within: [timeoutMs: number, topics?: readonly string[]]
): Promise<void> {
  const { behind } = await waitUntilCaughtUp(needs, ...within)
  if (behind.length > 0) throw new FailureError(`${failure}: ${behind.join('; ')}.`)
}

async function targetsAtHeads(log: LogExtents, topics: readonly string[]): Promise<Target[]> {
  const ofTopic = async (topic: string) => (await headsOf(log, topic)).map((head) => ({ topic, ...head }))
  return (await Promise.all(topics.map(ofTopic))).flat()
}
