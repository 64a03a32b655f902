import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Endpoint, QUESTION_TABLES, questionEndpoints, type StreamedTables } from '@gamenet/api'
import { type ClickHouse, codeOf, openStatementCheck } from '@gamenet/engines'

/** Returns the endpoints of the `.sql` files of a folder. Rejects with every fault, by file and line. */
export async function openQuestions(
  directory: string | undefined,
  { clickhouse, tables }: { readonly clickhouse: ClickHouse; readonly tables: StreamedTables }
): Promise<readonly Endpoint[]> {
  if (directory === undefined) return []
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort()
  const files = await Promise.all(
    names.map(async (file) => ({ file, text: await readFile(join(directory, file), 'utf8') }))
  )
  const check = await openStatementCheck(clickhouse.readers, QUESTION_TABLES)
  return await questionEndpoints({ files, tables, check, codeOf })
}
