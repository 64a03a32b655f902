import { type Projection, withDependents, withSources } from '../store/projection.js'
import { RebuildRefused } from './contract.js'

/** A request for a rebuild. */
export type RebuildRequest = {
  readonly projection: string
  /** Further projections to rebuild together with it. */
  readonly others?: readonly string[]
  readonly until: string | null
  readonly isFromLog: boolean
  /** The import that is undone; then all projections of the topic are rebuilt. */
  readonly retracts: string | null
  /** True if its swap and its end need no operator. */
  readonly isAutomatic: boolean
}

/**
 * Returns the projections that are rebuilt together. To the head: the projection and all that read its tables; from the
 * log, all projections of the topic, since its event table changes. For inspection (`until`): the projection and all
 * whose tables it reads, which must end at the same position. Throws a {@link RebuildRefused} for an unknown
 * projection, or for `until` together with the log.
 */
export function unitFor(
  projections: readonly Projection[],
  { projection, others = [], until, isFromLog, retracts }: Omit<RebuildRequest, 'isAutomatic'>
): readonly Projection[] {
  const { name, from } = projectionNamed(projections, projection)
  if (until !== null && isFromLog) {
    throw new RebuildRefused(
      '--until and --from-log cannot be combined: a rebuild for inspection reads the event tables. Give one of them.',
      {
        isUsage: true
      }
    )
  }
  if (until !== null) return withSources(projections, new Set([name]))
  const ofTopic = projections.filter((each) => each.from === from).map((each) => each.name)
  return withDependents(projections, new Set(isFromLog || retracts !== null ? ofTopic : [name, ...others]))
}

/** Returns the projection of a name. Throws a {@link RebuildRefused} that lists the known ones. */
export function projectionNamed(projections: readonly Projection[], name: string): Projection {
  const found = projections.find((each) => each.name === name)
  if (found !== undefined) return found
  const names = projections.map((each) => each.name).join(', ')
  throw new RebuildRefused(`There is no projection ${JSON.stringify(name)}; there are ${names}.`, { isUsage: true })
}
