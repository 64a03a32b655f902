import { z } from 'zod'

export const SqlSnapshot = z.object({
  /** Contains `parts/<table>`; the command removes it. Each snapshot has a database of its own. */
  directory: z.string(),
  database: z.string(),
  takenAt: z.string(),
  /**
   * Every event before these positions is in the tables; later ones may be. `title-count=1/0/86400`: epoch, partition,
   * offset.
   */
  position: z.string(),
  tables: z.array(z.object({ name: z.string(), definition: z.string() })),
  /** The datasets, as SELECTs from tables of the database. */
  views: z.array(z.object({ name: z.string(), select: z.string() }))
})
export type SqlSnapshot = z.infer<typeof SqlSnapshot>
