import { countRows, type DifferingSubject, readDifferingSubjects, readShape, type Sides } from '../store/comparison.js'
import type { Store, TableNames } from '../store/operation.js'
import { type KeyCondition, type Projection, tablesOf } from '../store/projection.js'
import type { ChangedSubject, SwapDifference } from './contract.js'
import { BUCKETS_AT_ONCE, bucketsFor, compareBuckets, comparedOf } from './verify.js'

/** Subjects that are listed; all are counted. Each takes some 200 bytes of a preview. */
const SUBJECTS_MAX = 20_000
/** Columns that say what a row is about. */
const SUBJECTS = [
  ...['title_id', 'leaderboard_id', 'player', 'user_key', 'rater_key', 'achievement_id'],
  ...['metric', 'source', 'import_id']
]
/** Columns of keys that say when, for the day of a row. */
const INSTANTS = ['ts', 'hour', 'day', 'first_seen']

/**
 * Returns the subjects whose rows differ between tables that nothing writes. It reads each table once, and once more
 * for every {@link BUCKETS_AT_ONCE} buckets that differ, whose rows are in memory; a subject is in one bucket.
 */
export async function differingSubjects(
  store: Store,
  unit: readonly Projection[],
  {
    live,
    fresh,
    key,
    signal
  }: {
    readonly live: TableNames
    readonly fresh: TableNames
    readonly key: KeyCondition | undefined
    readonly signal: AbortSignal
  }
): Promise<Pick<SwapDifference, 'subjects' | 'subjectCount'>> {
  const subjects: ChangedSubject[] = []
  let subjectCount = 0
  for (const { table, leftOut } of comparedOf(unit)) {
    const [liveTable, freshTable] = [live.get(table) ?? table, fresh.get(table) ?? table]
    const shape = await store.do(readShape, freshTable)
    const columns = subjectColumns(shape)
    const buckets = bucketsFor(await store.do(countRows, liveTable))
    const like = { shape, leftOut, buckets, by: Object.values(columns), ...(key === undefined ? {} : { key }) }
    const sides: Sides = { live: { table: liveTable, ...like }, fresh: { table: freshTable, ...like } }
    const { different } = await compareBuckets(store, sides)
    const projection = unit.find((each) => tablesOf(each).includes(table))?.name ?? ''
    const add = (found: readonly DifferingSubject[]) =>
      subjects.push(...found.map((subject) => ({ projection, table, ...subject })))
    for (let first = 0; first < different.length; first += BUCKETS_AT_ONCE) {
      signal.throwIfAborted()
      const at = { buckets: different.slice(first, first + BUCKETS_AT_ONCE), limit: SUBJECTS_MAX }
      const { listed, count } = await store.do(readDifferingSubjects, sides, columns, at)
      add(listed)
      subjectCount += count
      if (subjects.length > SUBJECTS_MAX) {
        subjects.sort((a, b) => b.rows - a.rows)
        subjects.length = SUBJECTS_MAX
      }
    }
  }
  return { subjects: subjects.sort((a, b) => b.rows - a.rows), subjectCount }
}

function subjectColumns({ key, values }: { readonly key: readonly string[]; readonly values: readonly string[] }) {
  const instant = INSTANTS.find((column) => key.includes(column))
  const named = SUBJECTS.filter((column) => [...key, ...values].includes(column))
  return {
    ...Object.fromEntries(named.map((column) => [column, `r.${column}`])),
    ...(instant === undefined ? {} : { day: `toDate(r.${instant})` })
  }
}
