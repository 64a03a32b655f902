import type { Queries } from './postgres.js'

/** Returns the age in transactions of the oldest unfrozen row in all databases; at 2^31 PostgreSQL refuses writes. */
export const transactionAge = async (postgres: Queries): Promise<number> => {
  const [row] = await postgres.query<{ age: number }>('SELECT max(age(d.datfrozenxid)) AS age FROM pg_database AS d')
  return row?.age ?? 0
}
