import { type ClickHouse, ClickHouseError } from '@gamenet/engines'
import { announceAllChanged, projections, storeOver } from '@gamenet/projector'
import { poll } from '@gamenet/schemas'

type Lane = ClickHouse['control']

/** Columns with a user_key, in all tables. */
const NAME_COLUMNS = ['user_key', 'rater_key']
/** Changes recorded by projections of topics about people use a user_key as key. */
const PEOPLE_PROJECTIONS = projections.filter(({ from }) => from.people !== undefined).map(({ name }) => name)
/** Used only by these conditions, so it identifies them in mutations. */
const NAME_HASH = 'sipHash64Keyed'
const LOOK_MS = 200
/** A mutation rewrites every part that holds a row of the person. */
const MUTATION_MS_MAX = 600_000
/** The engine aborts longer statements. */
const INSERT_MS_MAX = 600_000
/** Longest wait for the removal of replaced parts; a query may still read them. */
const OLD_PARTS_MS_MAX = 60_000
/** An engine removes the files of a dropped table after 480 s by default. */
const DROPPED_MS_MAX = 1_200_000
/**
 * Maximum number of rounds. Each round finds rows stored meanwhile by steps that had read earlier tables before the
 * deletion.
 */
const ROUNDS_MAX = 8
const UNKNOWN_TABLE = 60

export type EraseRowsNeeds = {
  readonly tables: Lane
  /** Salt of the ledger's hashes, hexadecimal. */
  readonly salt: string
  /** Resolves when every running step that writes rows has ended. */
  readonly stepsEnded: () => Promise<void>
  /** Called before each table. */
  readonly onTable: (done: number, total: number) => void
  readonly signal: AbortSignal
}

/** Returns the user_keys in the tables with one of these hashes; an unfinished erasure is known only by its hash. */
export async function usersInTables(
  { tables, salt, signal }: Pick<EraseRowsNeeds, 'tables' | 'salt' | 'signal'>,
  nameHashes: readonly string[]
): Promise<{ nameHash: string; userKey: string }[]> {
  const found = new Map<string, string>()
  const named = (await nameColumns(tables)).flatMap(({ table, columns }) =>
    columns.map((column) => ({ table, column }))
  )
  for (const { table, column } of named) {
    signal.throwIfAborted()
    const rows = await tables.rows(
      `SELECT n.name AS name, n.hash AS hash
       FROM (
         SELECT k.name AS name, lower(hex(SHA256(concat(unhex({salt: String}), k.name)))) AS hash
         FROM (SELECT DISTINCT ${column} AS name FROM ${table}) AS k
       ) AS n
       WHERE has({hashes: Array(String)}, n.hash)`,
      { salt, hashes: nameHashes }
    )
    for (const { name, hash } of rows) found.set(String(hash), String(name))
  }
  return [...found].map(([nameHash, userKey]) => ({ nameHash, userKey }))
}

/** Returns whether any table has a row of a user. */
export async function isKnownToTables(tables: Lane, userKey: string): Promise<boolean> {
  for (const { table, columns } of await nameColumns(tables)) {
    const condition = columns.map((column) => `n.${column} = {name: String}`).join(' OR ')
    const rows = await tables.rows(`SELECT 1 AS one FROM ${table} AS n WHERE ${condition} LIMIT 1`, { name: userKey })
    if (rows.length > 0) return true
  }
  return false
}

/**
 * Deletes every row of a user from every table, and waits until their files are deleted.
 *
 * A step that has read rows before the deletion stores derived rows afterwards: in a rebuild many seconds later, and
 * possibly into new tables. So each round waits for the running steps and lists the tables again. A round that finds
 * nothing is the last one: no step could have read a row in between.
 * @returns the number of deleted rows
 */
export async function eraseRows(cleaning: EraseRowsNeeds, userKey: string): Promise<number> {
  const { tables, stepsEnded, signal } = cleaning
  const names = new Set<string>()
  try {
    let deleted = 0
    for (let round = 1, found = Number.POSITIVE_INFINITY; found > 0; round += 1) {
      if (round > ROUNDS_MAX) throw new Error('rows of an erased person reappear in the tables repeatedly')
      await stepsEnded()
      await insertsEnded(cleaning)
      const conditions = await conditionsByTable(cleaning, userKey)
      // The engine keeps replaced parts for minutes, in case the machine fails before the new ones are on the disk.
      for (const { table } of conditions.filter((each) => !names.has(each.table))) {
        await unlessDropped(tables.execute(`ALTER TABLE ${table} MODIFY SETTING old_parts_lifetime = 1`))
        names.add(table)
      }
      found = await deleteRows(cleaning, conditions)
      deleted += found
    }
    await waitForOldParts(tables, [...names], signal)
    await waitForDroppedTables(tables, signal)
    // What is known of people may be something else now, whatever it was.
    await announceAllChanged(storeOver(tables), PEOPLE_PROJECTIONS)
    return deleted
  } finally {
    for (const table of names)
      await unlessDropped(tables.execute(`ALTER TABLE ${table} RESET SETTING old_parts_lifetime`))
  }
}

/**
 * Resolves when all current INSERTs in the engine have ended. A statement continues after its process was killed or
 * lost its connection.
 */
async function insertsEnded({ tables, signal }: EraseRowsNeeds): Promise<void> {
  const running = async () =>
    (
      await tables.rows(
        `SELECT p.query_id AS id FROM system.processes AS p WHERE p.current_database = currentDatabase() AND p.query_kind = 'Insert'`
      )
    ).map(({ id }) => String(id))
  const begun = new Set(await running())
  let left = begun.size
  await until(INSERT_MS_MAX, signal, async () => {
    left = (await running()).filter((id) => begun.has(id)).length
    return left === 0
  })
  if (left > 0) throw new Error(`${left} running statements may still store rows of the person; waiting for them`)
}

/** Runs work on a table of a rebuild, which may be dropped at any time. */
async function unlessDropped<Answer>(work: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await work
  } catch (error) {
    if (error instanceof ClickHouseError && error.code === UNKNOWN_TABLE) return undefined
    throw error
  }
}

type Condition = { readonly table: string; readonly condition: string }

/**
 * Removes the texts of finished mutations from the tables' files, which keep a hundred per table. The texts contain no
 * names, but they reveal to anyone with a name whether it was erased.
 */
export async function eraseConditions(tables: Lane): Promise<void> {
  await tables.execute(
    `KILL MUTATION WHERE database = currentDatabase() AND is_done AND position(command, '${NAME_HASH}') > 0`
  )
}

/**
 * Returns a condition per table. Conditions stay in the tables' files until {@link eraseConditions}, so they contain a
 * keyed hash instead of a name.
 */
async function conditionsByTable({ tables, salt }: EraseRowsNeeds, userKey: string): Promise<Condition[]> {
  const key = `(reinterpretAsUInt64(unhex('${salt.slice(0, 16)}')), reinterpretAsUInt64(unhex('${salt.slice(16, 32)}')))`
  const [row] = await tables.rows(`SELECT toString(${NAME_HASH}(${key}, {name: String})) AS hash`, { name: userKey })
  const isUser = (column: string) => `${NAME_HASH}(${key}, ${column}) = toUInt64(${row?.hash})`
  const named = await nameColumns(tables)
  return [
    ...named.map(({ table, columns }) => ({ table, condition: columns.map(isUser).join(' OR ') })),
    {
      table: 'data_change',
      condition: `projection IN (${PEOPLE_PROJECTIONS.map((name) => `'${name}'`).join(', ')}) AND ${isUser('key')}`
    }
  ]
}

/** Returns the tables with name columns, event tables first: rows derived afterwards no longer contain the person. */
async function nameColumns(tables: Lane): Promise<{ table: string; columns: string[] }[]> {
  const rows = await tables.rows(
    `SELECT c.table AS table, groupArray(c.name) AS columns
     FROM system.columns AS c
     INNER JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
     WHERE c.database = currentDatabase() AND has({columns: Array(String)}, c.name) AND t.engine LIKE '%MergeTree'
     GROUP BY c.table
     ORDER BY NOT startsWith(c.table, 'event_'), c.table`,
    { columns: NAME_COLUMNS }
  )
  return rows.map(({ table, columns }) => ({ table: String(table), columns: columns as string[] }))
}

async function deleteRows(
  { tables, onTable, signal }: EraseRowsNeeds,
  conditions: readonly Condition[]
): Promise<number> {
  let deleted = 0
  for (const [done, { table, condition }] of conditions.entries()) {
    signal.throwIfAborted()
    onTable(done, conditions.length)
    const [row] = (await unlessDropped(tables.rows(`SELECT count() AS rows FROM ${table} WHERE ${condition}`))) ?? []
    const rows = Number(row?.rows ?? 0)
    if (rows > 0) await unlessDropped(tables.execute(`ALTER TABLE ${table} DELETE WHERE ${condition}`))
    await until(MUTATION_MS_MAX, signal, async () => {
      const [left] = await tables.rows(
        `SELECT countIf(NOT m.is_done) AS mutations, anyIf(m.latest_fail_reason, NOT m.is_done) AS reason
         FROM system.mutations AS m WHERE m.database = currentDatabase() AND m.table = {table: String}`,
        { table }
      )
      if (left?.reason !== '') throw new Error(`${table} cannot be cleaned: ${left?.reason}`)
      return Number(left.mutations) === 0
    })
    deleted += rows
  }
  return deleted
}

/** Waits only for the current parts; later ones do not contain the person. */
async function waitForOldParts(tables: Lane, names: readonly string[], signal: AbortSignal): Promise<void> {
  const oldParts = async () =>
    (
      await tables.rows(
        `SELECT p.table AS table, p.name AS name FROM system.parts AS p
         WHERE p.database = currentDatabase() AND NOT p.active AND has({names: Array(String)}, p.table)`,
        { names }
      )
    ).map(({ table, name }) => ({ table: String(table), part: `${table}/${name}` }))
  const old = new Set((await oldParts()).map(({ part }) => part))
  await until(OLD_PARTS_MS_MAX, signal, async () => {
    const left = (await oldParts()).filter(({ part }) => old.has(part))
    // By default the engine checks twice a minute; an older ClickHouse cannot be configured.
    for (const table of new Set(left.map(({ table }) => table))) {
      await tables.execute(`SYSTEM START CLEANUP ${table}`).catch(() => undefined)
    }
    return left.length === 0
  })
}

/** Dropped tables are in no list, but their files remain: on a ClickHouse server for 8 minutes. */
async function waitForDroppedTables(tables: Lane, signal: AbortSignal): Promise<void> {
  const dropped = async () =>
    (
      await tables.rows(
        'SELECT toString(d.uuid) AS uuid FROM system.dropped_tables AS d WHERE d.database = currentDatabase()'
      )
    ).map(({ uuid }) => String(uuid))
  const before = new Set(await dropped())
  let left = before.size
  await until(DROPPED_MS_MAX, signal, async () => {
    left = (await dropped()).filter((uuid) => before.has(uuid)).length
    return left === 0
  })
  if (left > 0) throw new Error(`the files of ${left} dropped tables still exist; waiting for their removal`)
}

/** Polls until the condition holds, for at most `timeoutMs`. */
async function until(timeoutMs: number, signal: AbortSignal, isSo: () => Promise<boolean>): Promise<void> {
  await poll(isSo, Boolean, { everyMs: LOOK_MS, timeoutMs, signal })
}
