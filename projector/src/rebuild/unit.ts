import { type Projection, withDependents, withSources } from '../store/projection.js'
import { RebuildRefused } from './contract.js'

/** Names a rebuild of all projections. */
export const ALL = 'all'

/** A request for a rebuild. */
export type RebuildRequest = {
  readonly projection: string
  /** Further projections to rebuild together with it. */
  readonly others?: readonly string[]
  readonly until: string | null
  /** `until` is an instant of recording, of the log's clock. */
  readonly isByRecording?: boolean
  readonly isFromLog: boolean
  /** Most events per second of the fill. */
  readonly rate?: number
  /** The only key that is corrected, as an operator wrote it. */
  readonly key?: string
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
  if (projection === ALL) {
    if (!isFromLog) return projections
    throw new RebuildRefused('--from-log loads the events of one topic: give a projection instead of all.', {
      isUsage: true
    })
  }
  const { name, from } = projectionNamed(projections, projection)
  if (until !== null && isFromLog)
    throw new RebuildRefused(
      '--until or --recorded-until and --from-log cannot be combined: a rebuild for inspection reads the event ' +
        'tables. Give one of them.',
      {
        isUsage: true
      }
    )
  if (until !== null) return withSources(projections, new Set([name]))
  const ofTopic = projections.filter((each) => each.from === from).map((each) => each.name)
  return withDependents(projections, new Set(isFromLog || retracts !== null ? ofTopic : [name, ...others]))
}

/** Throws a {@link RebuildRefused} that lists the known projections, unless this is one of them, or all. */
export function requireKnown(projections: readonly Projection[], name: string): void {
  if (name !== ALL) projectionNamed(projections, name)
}

/** Returns the projection of a name. Throws a {@link RebuildRefused} that lists the known ones. */
export function projectionNamed(projections: readonly Projection[], name: string): Projection {
  const found = projections.find((each) => each.name === name)
  if (found !== undefined) return found
  const names = [...projections.map((each) => each.name), ALL].join(', ')
  throw new RebuildRefused(`There is no projection ${JSON.stringify(name)}; there are ${names}.`, { isUsage: true })
}
