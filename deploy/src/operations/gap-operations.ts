import { acceptedGaps, acceptGaps, readStalls, type StallReport } from '@gamenet/projector'
import { topics } from '@gamenet/schemas'
import { FailureError, UsageError } from '../config.js'
import type { Operations, StallStatus } from '../operator/operations.js'
import type { Engines } from '../wiring/engines.js'

/** What is asked and done about parts of the log that are gone. */
export function gapOperations(
  { clickhouse, log }: Engines,
  withLog: <Answer>(work: () => Promise<Answer>) => Promise<Answer>
): Pick<Operations, 'gaps' | 'acceptGap'> {
  const needs = { tables: clickhouse.control, log }
  return {
    gaps: () =>
      withLog(async () => ({
        open: (await readStalls(needs)).map(stallStatus),
        accepted: await acceptedGaps(needs.tables)
      })),
    acceptGap: (topic) =>
      withLog(async () => {
        if (!topics.some(({ name }) => name === topic)) {
          const names = topics.map(({ name }) => name).join(', ')
          throw new UsageError(`There is no topic ${JSON.stringify(topic)}; there are ${names}.`)
        }
        const stalled = await readStalls(needs, topic)
        const accepted = await acceptGaps(needs.tables, stalled)
        const [other] = stalled.filter((stall) => !accepted.includes(stall))
        if (other !== undefined) throw new FailureError(`This is no gap that can be accepted: ${other.reason}.`)
        return accepted.map(stallStatus)
      })
  }
}

export function stallStatus({
  topic,
  epoch,
  partition,
  first,
  next,
  wanted,
  loadedAt,
  reason
}: StallReport): StallStatus {
  return { topic, epoch, partition, loaded: wanted, first, head: next, loadedAt, reason }
}
