import {
  countRows,
  type DifferingSubject,
  readDifferingSubjects,
  readLaterKeys,
  readShape,
  type Sides
} from '../store/comparison.js'
import type { Store, TableNames } from '../store/operation.js'
import { DAY_MS, type KeyCondition, type Projection, tablesOf } from '../store/projection.js'
import { type ChangedSubject, RebuildRefused, type SwapDifference } from './contract.js'
import type { RebuildRecord } from './rebuild-record.js'
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

/** Throws a {@link RebuildRefused} if a preview is not of this rebuild, or does not show all that its swap changes. */
export function requirePreviewOf({ id, projection, startedAt }: RebuildRecord, expected: SwapDifference): void {
  const { rebuild, key, subjects, subjectCount } = expected
  const again = `Make another one: gamenet rebuild preview ${projection} --json.`
  if (rebuild.id !== id || rebuild.projection !== projection || rebuild.startedAt !== startedAt)
    throw new RebuildRefused(
      `The preview is of rebuild ${rebuild.id} of ${rebuild.projection}, begun at ${rebuild.startedAt}; rebuild ` +
        `${id} of ${projection} was begun at ${startedAt}. ${again}`,
      { isUsage: true }
    )
  if (key !== null)
    throw new RebuildRefused(`The preview is of ${key} only, and the swap is of all keys. ${again}`, { isUsage: true })
  if (subjects.length === subjectCount) return
  throw new RebuildRefused(
    `The preview lists ${subjects.length} of ${subjectCount} subjects that differ, so the others cannot be compared. ` +
      `Verify the rebuild and swap it in by --accept-differences.`
  )
}

/**
 * Returns what differs now, did not in a preview, and has no later event of its key and, if its rows have one, its day.
 */
export async function unexpected(
  store: Store,
  unit: readonly Projection[],
  now: Pick<SwapDifference, 'subjects'>,
  expected: SwapDifference
): Promise<readonly ChangedSubject[]> {
  const shown = new Set(expected.subjects.map(identityOf))
  const others = now.subjects.filter((each) => !shown.has(identityOf(each)))
  const found: ChangedSubject[] = []
  for (const projection of unit) {
    const own = others.filter((each) => each.projection === projection.name)
    if (own.length === 0) continue
    const { from, touches } = projection
    const columns = [...touches.key.matchAll(/\be\.(\w+)/g)].flatMap(([, column = '']) =>
      own.every(({ key }) => column in key) ? [column] : []
    )
    const values = columns.map((column) => [column, [...new Set(own.map(({ key }) => String(key[column])))]] as const)
    const later = { beyond: expected.position[from.name] ?? [], sinceMs: Date.parse(expected.comparedAt) }
    const events = await store.do(readLaterKeys, from, later, Object.fromEntries(values))
    const reachDays = Math.ceil((touches.reachMs ?? 0) / DAY_MS)
    found.push(
      ...own.filter(
        ({ key }) =>
          !events.some(
            (event) =>
              columns.every((column) => event[column] === String(key[column])) &&
              (key.day === undefined ||
                touches.isLasting === true ||
                Math.abs(Date.parse(String(key.day)) / DAY_MS - Number(event.day)) <= reachDays)
          )
      )
    )
  }
  return found
}

const identityOf = ({ table, key, hash }: ChangedSubject): string => JSON.stringify([table, key, hash])

function subjectColumns({ key, values }: { readonly key: readonly string[]; readonly values: readonly string[] }) {
  const instant = INSTANTS.find((column) => key.includes(column))
  const named = SUBJECTS.filter((column) => [...key, ...values].includes(column))
  return {
    ...Object.fromEntries(named.map((column) => [column, `r.${column}`])),
    ...(instant === undefined ? {} : { day: `toDate(r.${instant})` })
  }
}
