import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouse } from '@gamenet/engines'
import { flushPath } from '@gamenet/engines/files'
import { dataTables, ListedPart, listParts, vanishedParts } from '@gamenet/projector'
import { parseJson, pause } from '@gamenet/schemas'
import { z } from 'zod'
import { replaceFile } from '../data-directory.js'

/** The query takes 10 ms. A part inserted after the last list and lost before the next one is not noticed. */
const LIST_INTERVAL_MS = 60_000

/**
 * The parts of event tables and read tables, listed in a file. The engine does not notice a part whose folder vanished.
 */
export type PartList = {
  /** Writes the last list. */
  close(): Promise<void>
}

/**
 * Marks parts that vanished since the file was written like parts that the engine could not read, so that their rows
 * are restored, too. Then keeps the list up to date. Order: marks → list; a crash in between repeats the marks.
 */
export async function openPartList(file: string, tables: Pick<ClickHouse['control'], 'rows'>): Promise<PartList> {
  let written = await readFile(file, 'utf8').catch(() => '[]')
  // A crash may have damaged the file.
  const listed = z.array(ListedPart).safeParse(parseJson(written)).data ?? []
  for (const { path, part } of await vanishedParts(tables, listed, dataTables)) {
    const detached = join(path, 'detached')
    await mkdir(join(detached, `broken-on-start_${part}`), { recursive: true })
    await flushPath(detached)
  }
  const write = async () => {
    const text = JSON.stringify(await listParts(tables, dataTables))
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
