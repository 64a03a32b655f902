import type { Queries } from './postgres.js'

/** How many transactions lie behind the oldest that is not frozen, of all databases: at 2^31 nothing is written any more. */
export const transactionAge = async (postgres: Queries): Promise<number> => {
  const [row] = await postgres.query<{ age: number }>('SELECT max(age(d.datfrozenxid)) AS age FROM pg_database AS d')
  return row?.age ?? 0
}
