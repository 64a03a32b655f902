import { type Projection, readsOf, tablesOf } from '../store/projection.js'
import { RebuildRefused } from './contract.js'

/** A request for a rebuild. */
export type RebuildRequest = {
  readonly projection: string
  readonly until: string | null
  readonly isFromLog: boolean
  /** The import that is undone; then all projections of the topic are rebuilt. */
  readonly retracts: string | null
}

/**
 * Returns the projections that are rebuilt together. To the head: the projection and all that read its tables; from the log, all
 * projections of the topic, since its event table changes. For inspection (`until`): the projection and all whose tables it reads, which
 * must end at the same position. Throws a {@link RebuildRefused} for an unknown projection, or for `until` together with the log.
 */
export function unitFor(
  projections: readonly Projection[],
  { projection, until, isFromLog, retracts }: RebuildRequest
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
  return withDependents(projections, new Set(isFromLog || retracts !== null ? ofTopic : [name]))
}

/** Returns the projection of a name. Throws a {@link RebuildRefused} that lists the known ones. */
export function projectionNamed(projections: readonly Projection[], name: string): Projection {
  const found = projections.find((each) => each.name === name)
  if (found !== undefined) return found
  const names = projections.map((each) => each.name).join(', ')
  throw new RebuildRefused(`There is no projection ${JSON.stringify(name)}; there are ${names}.`, { isUsage: true })
}

/** Returns the other projections whose tables this one reads. */
export function sourcesOf(projections: readonly Projection[], projection: Projection): readonly Projection[] {
  const reads = new Set(readsOf(projection))
  return projections.filter(
    (each) =>
      each !== projection && (each.name === projection.after || tablesOf(each).some((table) => reads.has(table)))
  )
}

/** Returns these projections and all that read their tables, directly or not, in the order of the fill. */
export function withDependents(projections: readonly Projection[], names: ReadonlySet<string>): readonly Projection[] {
  const unit = new Set(names)
  // A projection that reads another one's table is listed after it.
  for (const each of projections) {
    if (sourcesOf(projections, each).some(({ name }) => unit.has(name))) unit.add(each.name)
  }
  return projections.filter(({ name }) => unit.has(name))
}

/** Returns these projections and all whose tables they read, directly or not. */
export function withSources(projections: readonly Projection[], names: ReadonlySet<string>): readonly Projection[] {
  const unit = new Set(names)
  for (const each of projections.toReversed()) {
    if (!unit.has(each.name)) continue
    for (const source of sourcesOf(projections, each)) unit.add(source.name)
  }
  return projections.filter(({ name }) => unit.has(name))
}
