import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClickHouse } from '@gamenet/engines'
import { flushPath } from '@gamenet/engines/files'
import {
  dataTables,
  ListedPart,
  listParts,
  type MiscountedPart,
  miscountedParts,
  type VanishedPart,
  vanishedParts
} from '@gamenet/projector'
import { checkedText, errorCode, parseJson, pause, withChecksum } from '@gamenet/schemas'
import { z } from 'zod'
import { replaceFile } from '../data-directory.js'

/** The file of the list in the data directory. */
export const PART_LIST = 'parts.json'

/** The query takes 10 ms. A part inserted after the last list and lost before the next one is not noticed. */
const LIST_INTERVAL_MS = 60_000

const LISTED = [...dataTables, 'checkpoint']
/** The engine reports a detached folder as unreadable only if it is named like a part. */
const WHOLE_TABLE = 'all_0_0_0'

/**
 * A file that lists the parts of event tables, read tables and checkpoints. The engine does not notice a part whose
 * directory vanished, or whose number of rows is wrong, nor that all tables vanished.
 */
export type PartList = {
  /** The differences that were found. Parts that vanished are marked now, so they are not among them. */
  readonly found: PartComparison
  /**
   * Omits these tables from the list while work runs that deletes rows of them: it leaves parts without rows, which the
   * engine removes.
   */
  whileDeletingFrom<Result>(tables: readonly string[], work: () => Promise<Result>): Promise<Result>
  /** Writes the last list. */
  close(): Promise<void>
}

/**
 * Compares the tables with the file. Parts that vanished are marked like parts that the engine could not read, so that
 * their rows are restored, too. Numbers of rows are corrected. Then keeps the list up to date. Order: marks → list; a
 * crash in between repeats the marks.
 */
export async function openPartList(
  file: string,
  tables: ClickHouse['control'],
  warn: (sentence: string) => void
): Promise<PartList> {
  const { vanished, miscounted, unusable } = await comparePartList(file, tables)
  if (unusable !== undefined)
    warn(
      `${file} is ${unusable}: this start does not notice parts that vanished. If other files were lost with it, rebuild the projections (gamenet rebuild).`
    )
  for (const { path, part } of vanished) await markLost(path, part)
  await correct(tables, miscounted)
  let written: string | undefined
  const deleting = new Set<readonly string[]>()
  const write = async () => {
    const omitted = new Set([...deleting].flat().map((table) => table.split('__')[0]))
    const names = LISTED.filter((name) => !omitted.has(name))
    const text = withChecksum(JSON.stringify(await listParts(tables, names)))
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
    found: { vanished: [], miscounted, unusable },
    whileDeletingFrom: async (names, work) => {
      // A set of its own for each call: two may delete from one table.
      const own = [...names]
      deleting.add(own)
      try {
        await write()
        return await work()
      } finally {
        deleting.delete(own)
        await tryToWrite()
      }
    },
    close: async () => {
      stopping.abort()
      await writing
      await tryToWrite()
    }
  }
}

/** How the tables differ from the list. */
export type PartComparison = {
  readonly vanished: readonly VanishedPart[]
  readonly miscounted: readonly MiscountedPart[]
  /** Why nothing was compared, if there is anything to compare. */
  readonly unusable: 'missing' | 'damaged' | undefined
}

/** Compares the tables with the file. Call it while nothing writes. */
export async function comparePartList(
  file: string,
  tables: Pick<ClickHouse['control'], 'rows'>
): Promise<PartComparison> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => (errorCode(error) === 'ENOENT' ? undefined : ''))
  const listed = text === undefined ? undefined : listedIn(text)
  const isEmpty = listed === undefined && (await listParts(tables, LISTED)).length === 0
  return {
    vanished: await vanishedParts(tables, listed ?? [], LISTED),
    miscounted: await miscountedParts(tables, listed ?? []),
    unusable: listed !== undefined || isEmpty ? undefined : text === undefined ? 'missing' : 'damaged'
  }
}

/**
 * Makes the next start restore the rows of a part or of a table, as after a part that the engine could not read;
 * returns the path of the mark.
 */
export async function markLost(path: string, part = WHOLE_TABLE): Promise<string> {
  const detached = join(path, 'detached')
  const mark = join(detached, `broken-on-start_${part}`)
  await mkdir(mark, { recursive: true })
  await flushPath(detached)
  return mark
}

/**
 * Writes the listed numbers of rows. The engine reads them when it attaches a table: here, or after a crash at its next
 * start.
 */
async function correct(
  tables: Pick<ClickHouse['control'], 'execute'>,
  miscounted: readonly MiscountedPart[]
): Promise<void> {
  for (const { path, rows } of miscounted) await replaceFile(join(path, 'count.txt'), String(rows))
  for (const table of new Set(miscounted.map((part) => part.table))) {
    await tables.execute(`DETACH TABLE ${table} SYNC`)
    await tables.execute(`ATTACH TABLE ${table}`)
  }
}

/**
 * Returns the parts of a list; undefined if it is damaged. Lists of earlier programs have no checksum, so they are not
 * trusted.
 */
function listedIn(text: string): ListedPart[] | undefined {
  if (text.startsWith('[')) return []
  return z.array(ListedPart).safeParse(parseJson(checkedText(text) ?? '')).data
}
