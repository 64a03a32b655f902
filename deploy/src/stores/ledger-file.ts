import { createHash } from 'node:crypto'
import { readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Postgres } from '@gamenet/engines'
import { flushPath } from '@gamenet/engines/files'
import { errorCode, parseJson } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError } from '../config.js'
import type { Engines } from './engines.js'
import { addToLedger, readLedger, readSalt, saltMark } from './ledger.js'

/*
 * A copy of the ledger outside the engines, which an operator can store elsewhere. It contains only hashes, which do
 * not reveal names. With an older copy of the data, it lists the users to erase again.
 */

/** In the data directory. */
export const LEDGER_FILE = 'erasures.json'

const Ledger = z.object({
  /** Identifies the installation: hashes of another one cannot be compared. */
  saltMark: z.string().regex(/^[0-9a-f]+$/),
  entries: z.array(z.object({ nameHash: z.string().regex(/^[0-9a-f]{64}$/), erasedAtMs: z.int() }))
})
const LedgerFile = Ledger.extend({
  format: z.literal(1),
  /** {@link hashOf}: a changed time would erase a user again who has returned. */
  sha256: z.string()
}).refine((file) => file.sha256 === hashOf(file), 'bytes were changed')
export type LedgerFile = z.infer<typeof LedgerFile>

/** A copy of another PostgreSQL, whose hashes this one cannot compare, or one that could not be read. */
const KEPT_FILE = /^erasures-(?:[0-9a-f]+|unreadable)\.json$/

/**
 * Writes the whole ledger atomically, with the entries of the former copy: it may not be merged yet. A copy of another
 * PostgreSQL, which lists erasures, or an unreadable one is kept under another name.
 */
async function writeLedgerFile(writes: Postgres, path: string): Promise<void> {
  const mark = saltMark(await readSalt(writes))
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (errorCode(error) !== 'ENOENT') throw error
  })
  const former = text === undefined ? undefined : LedgerFile.safeParse(parseJson(text)).data
  const keepAs = async (name: string) => await rename(path, join(dirname(path), `erasures-${name}.json`))
  if (text !== undefined && former === undefined) await keepAs('unreadable')
  else if (former !== undefined && former.saltMark !== mark && former.entries.length > 0) await keepAs(former.saltMark)
  const entries = new Map(former?.saltMark === mark ? former.entries.map((entry) => [entry.nameHash, entry]) : [])
  for (const { nameHash, erasedAt } of await readLedger(writes))
    entries.set(nameHash, { nameHash, erasedAtMs: erasedAt.getTime() })
  const ledger = { saltMark: mark, entries: [...entries.values()] }
  const file: LedgerFile = { format: 1, sha256: hashOf(ledger), ...ledger }
  const draft = `${path}.new`
  await writeFile(draft, `${JSON.stringify(file)}\n`, { flush: true })
  await rename(draft, path)
  await flushPath(dirname(path))
}

type CopyNeeds = Pick<Engines, 'writes'> & {
  /** Absent without a data directory. */
  readonly directory: Pick<NonNullable<Engines['directory']>, 'part' | 'path'> | undefined
}

/** Writes a copy of the ledger next to the engines' files, for the restore of an older copy. */
export async function writeLedgerCopy({ directory, writes }: CopyNeeds): Promise<void> {
  if (directory !== undefined) await writeLedgerFile(await writes(), directory.part(LEDGER_FILE))
}

/**
 * Merges the copies next to the engines' files into the write side, which is an older one if it lacks entries of them.
 * A copy of another PostgreSQL, or an unreadable one, is passed over.
 * @returns a sentence for each of these
 */
export async function mergeLedgerCopy({ directory, writes }: CopyNeeds): Promise<readonly string[]> {
  if (directory === undefined) return []
  const passedOver: string[] = []
  const postgres = await writes()
  const ownMark = saltMark(await readSalt(postgres))
  for (const name of await readdir(directory.path)) {
    if (name !== LEDGER_FILE && !KEPT_FILE.test(name)) continue
    try {
      const { saltMark: mark, entries } = await readLedgerFile(directory.part(name))
      if (mark === ownMark) await addToLedger(postgres, entries)
      else if (entries.length > 0)
        passedOver.push(`erasures-${mark}.json lists ${entries.length} erasures that this PostgreSQL cannot compare`)
    } catch (error) {
      if (!(error instanceof FailureError)) throw error
      passedOver.push(`erasures that ${name} lists are not compared: ${error.message}`)
    }
  }
  return passedOver
}

/** Reads a ledger's file, or that of a data directory. Throws a `FailureError` if there is none. */
export async function readLedgerFile(path: string): Promise<LedgerFile> {
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    () => false
  )
  const file = isFolder ? join(path, LEDGER_FILE) : path
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    const code = errorCode(error)
    throw new FailureError(
      `The ledger ${file} cannot be read (${code}); give --ledger a data directory, or a copy of its ${LEDGER_FILE}.`
    )
  })
  const parsed = LedgerFile.safeParse(parseJson(text))
  if (parsed.success) return parsed.data
  throw new FailureError(`${file} is not an erasure ledger, or is damaged; expected a copy of a ${LEDGER_FILE}.`)
}

/** The hash of a ledger's content, as hexadecimal digits. */
function hashOf({ saltMark, entries }: z.infer<typeof Ledger>): string {
  const values = entries.map(({ nameHash, erasedAtMs }) => [nameHash, erasedAtMs])
  return createHash('sha256')
    .update(JSON.stringify([saltMark, values]))
    .digest('hex')
}

/**
 * Merges a newer ledger into the write side. Its additional users are erased again at the next start of a service.
 * @returns the number of additional users
 */
export async function mergeLedger(writes: Postgres, ledger: LedgerFile): Promise<number> {
  if (ledger.saltMark !== saltMark(await readSalt(writes)))
    throw new FailureError(
      `The ledger is of another installation (${ledger.saltMark}); its hashes cannot be compared. Give the ledger of ` +
        `the service that wrote the backup.`
    )
  return await addToLedger(writes, ledger.entries)
}
