import { acceptedGaps, acceptGaps, type Halt, readHalts } from '@gamenet/projector'
import { topics } from '@gamenet/schemas'
import { FailureError, UsageError } from '../config.js'
import type { HaltStatus, Operations } from '../operator/operations.js'
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
        open: (await readHalts(needs)).map(haltStatus),
        accepted: await acceptedGaps(needs.tables)
      })),
    acceptGap: (topic) =>
      withLog(async () => {
        if (!topics.some(({ name }) => name === topic)) {
          const names = topics.map(({ name }) => name).join(', ')
          throw new UsageError(`There is no topic ${JSON.stringify(topic)}; there are ${names}.`)
        }
        const halts = await readHalts(needs, topic)
        const accepted = await acceptGaps(needs.tables, halts)
        const [other] = halts.filter((halt) => !accepted.includes(halt))
        if (other !== undefined) throw new FailureError(`This is no gap that can be accepted: ${other.reason}.`)
        return accepted.map(haltStatus)
      })
  }
}

export function haltStatus({ topic, epoch, partition, first, next, wanted, loadedAt, reason }: Halt): HaltStatus {
  return { topic, epoch, partition, loaded: wanted, first, head: next, loadedAt, reason }
}
