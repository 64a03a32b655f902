import { type Pointers, readPointers } from './generation.js'
import { type NamedTables, operation } from './operation.js'

/**
 * Creates or replaces the views for people who write SQL: each has the bare name of a table and shows the merged rows
 * of the generation that answers read. No statement of the program reads them. `all`: also those that show the right
 * generation, whose columns may have changed.
 */
export const replaceReadViews = operation(
  'replaces views for people',
  async (tables, { all }: { readonly all: boolean }): Promise<void> => {
    // Every process replaces them at its start, without a lock: during a swap the view of the former generation could
    // be stored last.
    for (let replaced: Pointers | undefined; ; ) {
      const pointers = await readPointers.run(tables)
      if (replaced?.version === pointers.version) return
      await replaceWith(tables, pointers, all)
      replaced = pointers
    }
  }
)

async function replaceWith(tables: NamedTables, { serving }: Pointers, all: boolean): Promise<void> {
  const read = await tables.rows(
    `SELECT t.name AS name, splitByString('__', t.name)[1] AS bare,
    groupArrayIf(c.name, c.default_kind = 'ALIAS') AS aliases
     FROM system.tables AS t INNER JOIN system.columns AS c ON c.database = t.database AND c.table = t.name
     WHERE t.database = currentDatabase() AND match(t.name, '__[0-9]+$') AND t.engine LIKE '%MergeTree'
     GROUP BY t.name ORDER BY t.name`
  )
  const views = await tables.rows(
    `SELECT t.name AS name, t.as_select AS statement FROM system.tables AS t
     WHERE t.database = currentDatabase() AND t.engine = 'View'`
  )
  const shown = new Map(views.map(({ name, statement }) => [String(name), String(statement)]))
  for (const { name, bare, aliases } of read) {
    const view = String(bare)
    if (name !== serving.nameOf(view) || (!all && shown.get(view)?.endsWith(`.${String(name)} FINAL`) === true))
      continue
    const columns = ['*', ...(aliases as readonly string[])].join(', ')
    await tables.execute(`CREATE OR REPLACE VIEW ${view} AS SELECT ${columns} FROM ${String(name)} FINAL`)
  }
}
