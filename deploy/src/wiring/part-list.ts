import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouse } from '@gamenet/engines'
import { flushPath } from '@gamenet/engines/files'
import { dataTables, ListedPart, listParts, vanishedParts } from '@gamenet/projector'
import { pause } from '@gamenet/schemas'
import { z } from 'zod'
import { replaceFile } from '../data-directory.js'

/** A query of 10 ms; parts that were inserted since the last list are not missed when they vanish. */
const LIST_INTERVAL_MS = 60_000

/** The parts of event tables and read tables, listed in a file. The engine does not miss a part whose folder vanished. */
export type PartList = {
  /** Writes the last list. */
  close(): Promise<void>
}

/**
 * Marks parts that vanished since the file was written as the engine marks parts that it cannot read, so that their rows are
 * restored like those of such parts. Then keeps the list up to date. Order: marks → list; a crash in between repeats the marks.
 */
export async function openPartList(file: string, tables: Pick<ClickHouse['control'], 'rows'>): Promise<PartList> {
  let written = await readFile(file, 'utf8').catch(() => '[]')
  for (const { path, part } of await vanishedParts(tables, partsOf(written), dataTables)) {
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
  // An older list stays valid: parts that were merged since are in the blocks of others.
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

/** No parts where a crash damaged the file. */
function partsOf(text: string): ListedPart[] {
  try {
    return z.array(ListedPart).parse(JSON.parse(text))
  } catch {
    return []
  }
}
