import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Endpoint, type QuestionFault, questionEndpoints, type StreamedTables } from '@gamenet/api'
import { codeOf } from '@gamenet/engines/sql'
import { errorCode } from '@gamenet/schemas'
import { FailureError } from '../config.js'

/** The questions of a folder: the endpoints of those without a fault, and the faults, each with its file and line. */
export type Questions = { readonly endpoints: readonly Endpoint[]; readonly faults: readonly QuestionFault[] }

/** Returns the endpoints; throws one `FailureError` with every fault. */
export function endpointsOf({ endpoints, faults }: Questions): readonly Endpoint[] {
  if (faults.length === 0) return endpoints
  throw new FailureError(`Questions cannot be served.\n${faults.map(({ message }) => message).join('\n')}`)
}

/** Reads and checks the `.sql` files of a folder. Rejects if the folder cannot be read or the engine is unavailable. */
export async function readQuestions(directory: string | undefined, tables: StreamedTables): Promise<Questions> {
  if (directory === undefined) return { endpoints: [], faults: [] }
  const found = await readdir(directory).catch((error: unknown) => {
    throw new FailureError(
      `QUESTIONS_DIR is ${JSON.stringify(directory)}: it cannot be read (${errorCode(error)}), expected a folder of ` +
        `.sql files.`
    )
  })
  const names = found.filter((name) => name.endsWith('.sql')).sort()
  const files = await Promise.all(names.map(async (file) => ({ file, text: await textOf(directory, file) })))
  await tables.json('SELECT 1 AS one', {}, { isQuestion: true }).catch((error: unknown) => {
    if (Number(errorCode(error)) !== AUTHENTICATION_FAILED) throw error
    throw new FailureError(
      'Questions run as the user gamenet_questions of the ClickHouse server, who is missing, or was made with ' +
        'another password in CLICKHOUSE_URL. Make this user with `gamenet migrate --analyst`.'
    )
  })
  return await questionEndpoints({ files, tables, codeOf })
}

/** ClickHouse's code. */
const AUTHENTICATION_FAILED = 516

async function textOf(directory: string, file: string): Promise<string> {
  const text = await readFile(join(directory, file), 'utf8').catch((error: unknown) => {
    throw new FailureError(`Questions cannot be served.\n${file}:1: it cannot be read (${errorCode(error)}).`)
  })
  // Editors on Windows begin a file with a byte order mark.
  return text.replace(/^\uFEFF/, '')
}
