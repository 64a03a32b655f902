import { type Projection, readsOf, tablesOf } from '../project/projection.js'
import { RebuildRefused } from './rebuild.js'

/** What somebody wants rebuilt. */
export type RebuildRequest = {
  readonly projection: string
  readonly until: string | null
  readonly isFromLog: boolean
  /** The import that it takes back; then all projections of the topic are in it. */
  readonly retracts: string | null
}

/**
 * What is rebuilt together. To the end: the projection and all that reads it; from the log all projections of the topic, whose
 * event table is another one then. For inspection: it and all that it reads, for
 * what it reads must end where it ends.
 */
export function unitFor(
  projections: readonly Projection[],
  { projection, until, isFromLog, retracts }: RebuildRequest
): readonly Projection[] {
  const { name, from } = projectionNamed(projections, projection)
  if (until !== null && isFromLog) {
    throw new RebuildRefused(
      '--until and --from-log do not go together: what is for inspection reads the event tables.',
      {
        isUsage: true
      }
    )
  }
  if (until !== null) return withSources(projections, new Set([name]))
  const ofTopic = projections.filter((each) => each.from === from).map((each) => each.name)
  return withDependents(projections, new Set(isFromLog || retracts !== null ? ofTopic : [name]))
}

/** The projection of a name. Throws a {@link RebuildRefused} that lists those there are. */
export function projectionNamed(projections: readonly Projection[], name: string): Projection {
  const found = projections.find((each) => each.name === name)
  if (found !== undefined) return found
  const names = projections.map((each) => each.name).join(', ')
  throw new RebuildRefused(`There is no projection ${JSON.stringify(name)}; there are ${names}.`, { isUsage: true })
}

/** The projections whose tables this one reads, itself left out. */
export function sourcesOf(projections: readonly Projection[], projection: Projection): readonly Projection[] {
  const reads = new Set(readsOf(projection))
  return projections.filter(
    (each) =>
      each !== projection && (each.name === projection.after || tablesOf(each).some((table) => reads.has(table)))
  )
}

/** These projections and all that read their tables, however indirectly, in the order in which they are filled. */
export function withDependents(projections: readonly Projection[], names: ReadonlySet<string>): readonly Projection[] {
  const unit = new Set(names)
  // One that reads another's table stands behind it.
  for (const each of projections) {
    if (sourcesOf(projections, each).some(({ name }) => unit.has(name))) unit.add(each.name)
  }
  return projections.filter(({ name }) => unit.has(name))
}

/** These projections and all whose tables they read, however indirectly. */
export function withSources(projections: readonly Projection[], names: ReadonlySet<string>): readonly Projection[] {
  const unit = new Set(names)
  for (const each of projections.toReversed()) {
    if (!unit.has(each.name)) continue
    for (const source of sourcesOf(projections, each)) unit.add(source.name)
  }
  return projections.filter(({ name }) => unit.has(name))
}
