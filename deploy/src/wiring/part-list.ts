import { mkdir, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouse } from '@gamenet/engines'
import { flushPath } from '@gamenet/engines/files'
import { dataTables, ListedPart, listParts, vanishedParts } from '@gamenet/projector'
import { parseJson, pause } from '@gamenet/schemas'
import { z } from 'zod'
import { replaceFile } from '../data-directory.js'

/** The query takes 10 ms. A part inserted after the last list and lost before the next one is not noticed. */
const LIST_INTERVAL_MS = 60_000

const LISTED = [...dataTables, 'checkpoint']

/**
 * A file that lists the parts of event tables, read tables and checkpoints. The engine does not notice a part whose directory vanished,
 * or whose number of rows is wrong, nor that all tables vanished.
 */
export type PartList = {
  /** Writes the last list. */
  close(): Promise<void>
}

/**
 * Marks parts that vanished since the file was written like parts that the engine could not read, so that their rows
 * are restored, too. Then keeps the list up to date. Order: marks → list; a crash in between repeats the marks.
 */
export async function openPartList(
  file: string,
  tables: Pick<ClickHouse['control'], 'rows' | 'execute'>
): Promise<PartList> {
  let written = await readFile(file, 'utf8').catch(() => '[]')
  // A crash may have damaged the file.
  const listed = z.array(ListedPart).safeParse(parseJson(written)).data ?? []
  for (const { table, path, part, isMiscounted } of await vanishedParts(tables, listed, LISTED)) {
    const detached = join(path, 'detached')
    const mark = join(detached, `broken-on-start_${part}`)
    if (isMiscounted) {
      await tables.execute(`ALTER TABLE ${table} DETACH PART '${part}'`)
      await rename(join(detached, part), mark)
    } else await mkdir(mark, { recursive: true })
    await flushPath(detached)
  }
  const write = async () => {
    const text = JSON.stringify(await listParts(tables, LISTED))
    if (text === written) return
    await replaceFile(file, text)
    written = text
  }
  // An older list stays valid: parts merged since are contained in the blocks of others.
  const tryToWrite = () => write().catch(() => undefined)
  await tryToWrite()
  const stopping = new AbortController()
  const writing = (async () => {
    while (!stopping.signal.aborted) {
      await pause(LIST_INTERVAL_MS, stopping.signal, { ref: false })
      if (!stopping.signal.aborted) await tryToWrite()
    }
  })()
  return {
    close: async () => {
      stopping.abort()
      await writing
      await tryToWrite()
    }
  }
}
