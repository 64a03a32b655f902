import { retryDropped, withServing } from '@gamenet/schemas'
import type { AnswerContext } from '../answers/endpoint.js'
import type { PipelineNeeds } from './pipeline.js'

/** The dependencies of reads outside of the pipeline. */
export type ReadNeeds = Pick<PipelineNeeds, 'tables' | 'positions' | 'writes' | 'catalog' | 'versions'>

/** Reads the tables of one instant, and repeats the read if one of them was dropped after a swap. */
export async function atOneInstant<Result>(
  { tables, positions, writes, catalog, versions }: ReadNeeds,
  signal: AbortSignal,
  read: (context: AnswerContext) => Promise<Result>
): Promise<Result> {
  return await retryDropped(versions, () => {
    const { serving } = versions
    return read({
      tables: withServing(tables, serving),
      positions: (names) => positions(serving, names),
      writes,
      catalog: () => catalog.newest(serving),
      boards: () => catalog.boards(serving),
      playersCheckedMs: async () => null,
      signal
    })
  })
}
