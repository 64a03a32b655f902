import { linesOf, operation } from './operation.js'

/** Reads the newest definition of each projection, as text. */
export const readDefinitions = operation(
  'reads definitions of projections',
  async (tables): Promise<ReadonlyMap<string, string>> => {
    const rows = await tables.rows(
      'SELECT d.name AS name, argMax(d.definition, d.version) AS definition FROM projection_definition AS d GROUP BY d.name'
    )
    return new Map(rows.map(({ name, definition }) => [String(name), String(definition)]))
  }
)

/** Reads the highest version; 0 where there is no definition. */
export const readNewestDefinition = operation(
  'reads the newest version of definitions',
  async (tables): Promise<number> => {
    const [row] = await tables.rows('SELECT max(d.version) AS version FROM projection_definition AS d')
    return Number(row?.version ?? 0)
  }
)

/** Stores definitions under one version, all or none; from then on they are the newest of their names. */
export const storeDefinitions = operation(
  'stores definitions of projections',
  async (
    tables,
    version: number,
    definitions: readonly { readonly name: string; readonly definition: string }[]
  ): Promise<void> => {
    const rows = definitions.map(({ name, definition }) => [name, definition, version])
    await tables.insert('projection_definition', ['name', 'definition', 'version'], linesOf(rows))
  }
)
