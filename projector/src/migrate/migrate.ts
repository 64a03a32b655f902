import { Failure } from '@gamenet/schemas'
import { foreignStatements } from '../generations/generations.js'
import { projections } from '../projections/projections.js'
import { storeOver } from '../store/operation.js'
import type { Tables } from '../store/tables.js'
import { migrateSchema, OTHER_DATABASE } from './migrate-schema.js'

/**
 * Migrates the tables to the newest schema, and returns the names of the applied migrations. Rejects with
 * `newer_store` if a newer program has migrated the tables or fills them; an earlier one may.
 */
export async function migrate(tables: Tables): Promise<string[]> {
  const applied = await migrateSchema(tables)
  const foreign = await foreignStatements(storeOver(tables), projections)
  if (foreign === undefined) return applied
  throw new Failure(
    'newer_store',
    `The tables belong to another program: ${foreign}, or give this one ${OTHER_DATABASE}.`
  )
}
