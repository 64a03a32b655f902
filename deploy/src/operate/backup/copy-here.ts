import { createHash } from 'node:crypto'
import {
  appendFileSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  symlinkSync,
  writeSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { errorCode, parseJson } from '@gamenet/schemas'
import { ENTRIES_FILE, Entry, isInnerLink } from './manifest.js'

/** A backup copies whole trees into the root; a restore copies the files of a list. */
export type CopyRequest =
  | {
      readonly kind: 'trees'
      /** The folder that receives all files. */
      readonly root: string
      /** The list of files; entries are appended. */
      readonly list: string
      /** Files or folders, and their paths under the root. */
      readonly trees: readonly { readonly from: string; readonly to: string }[]
    }
  | { readonly kind: 'listed'; readonly list: string; readonly from: string; readonly root: string }

export type Copied = {
  readonly files: number
  readonly bytes: number
  /** How a file differs from the list, or why it cannot be in one; then the result is invalid. */
  readonly differs: string | null
}

const CHUNK_BYTES = 1024 * 1024
const REPORT_BYTES = 16 * CHUNK_BYTES

class Differs extends Error {}

const chunk = Buffer.allocUnsafe(CHUNK_BYTES)

/** What one request has copied, and `onBytes` for what was copied since it was last called. */
type Count = { files: number; bytes: number; unreported: number; readonly onBytes: (bytes: number) => void }

/** Copies files, waiting for the disk. It holds one mebibyte of one file at a time. */
export function copyHere(request: CopyRequest, onBytes: (bytes: number) => void): Copied {
  const total: Count = { files: 0, bytes: 0, unreported: 0, onBytes }
  try {
    if (request.kind === 'trees') copyTrees(request, total)
    else copyListed(request, total)
    onBytes(total.unreported)
    return { files: total.files, bytes: total.bytes, differs: null }
  } catch (error) {
    if (!(error instanceof Differs)) throw error
    return { files: 0, bytes: 0, differs: error.message }
  }
}

type Adding = { readonly root: string; readonly total: Count; add(entry: Entry): void }

function copyTree(from: string, to: string, adding: Adding): void {
  const { root, total, add } = adding
  const found = lstatSync(from)
  if (found.isSymbolicLink()) {
    const link = readlinkSync(from)
    if (!isInnerLink(to, link)) throw new Differs(`${from} is a link to ${link}, which a restore would not follow`)
    add({ path: to, link })
  } else if (found.isFile()) add({ path: to, ...copyFile(from, join(root, to), total) })
  else if (found.isDirectory()) {
    const names = readdirSync(from)
    if (names.length === 0) add({ path: to, isFolder: true })
    else mkdirSync(join(root, to), { recursive: true })
    for (const name of names) copyTree(join(from, name), `${to}/${name}`, adding)
  }
}

function copyFile(from: string, to: string, total: Count): { bytes: number; sha256: string } {
  // Opening a pipe would wait for its writer.
  const source = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const target = openSync(to, 'wx')
    try {
      const hash = createHash('sha256')
      let bytes = 0
      for (;;) {
        const read = readSync(source, chunk)
        if (read === 0) break
        const part = chunk.subarray(0, read)
        hash.update(part)
        for (let written = 0; written < read; ) written += writeSync(target, part, written)
        bytes += read
        count(total, read)
      }
      total.files += 1
      return { bytes, sha256: hash.digest('hex') }
    } finally {
      closeSync(target)
    }
  } finally {
    closeSync(source)
  }
}

function count(total: Count, bytes: number): void {
  total.bytes += bytes
  total.unreported += bytes
  if (total.unreported < REPORT_BYTES) return
  total.onBytes(total.unreported)
  total.unreported = 0
}

function copyTrees({ root, list, trees }: Extract<CopyRequest, { kind: 'trees' }>, total: Count): void {
  const lines: string[] = []
  for (const { from, to } of trees) {
    mkdirSync(dirname(join(root, to)), { recursive: true })
    // A folder on another disk, which a link names, is copied.
    const add = (entry: Entry): void => {
      lines.push(`${JSON.stringify(entry)}\n`)
      if (lines.length >= 1000) appendFileSync(list, lines.splice(0).join(''))
    }
    copyTree(realpathSync(from), to, { root, total, add })
  }
  appendFileSync(list, lines.join(''))
}

/** The hash of the list was verified, but a changed backup can have another hash as well. */
function copyListed({ list, from, root }: Extract<CopyRequest, { kind: 'listed' }>, total: Count): void {
  const made = new Set(['.'])
  for (const line of readFileSync(list, 'utf8').split('\n')) {
    if (line === '') continue
    const entry = Entry.safeParse(parseJson(line)).data
    if (entry === undefined) throw new Differs(`${ENTRIES_FILE} has a line that names no place in it, ${line}`)
    try {
      copyEntry(entry, { from, root, made, total })
    } catch (error) {
      const fault = FAULTS[errorCode(error)]
      throw fault === undefined ? error : new Differs(`${entry.path} ${fault}`)
    }
  }
}

const FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'is missing',
  ENOTDIR: 'is missing',
  ENAMETOOLONG: 'is too long',
  EEXIST: 'is listed twice, or below a link'
}

type Place = { readonly from: string; readonly root: string; readonly made: Set<string>; readonly total: Count }

function copyEntry(entry: Entry, { from, root, made, total }: Place): void {
  const { path } = entry
  const target = join(root, path)
  makeFolders(root, 'isFolder' in entry ? path : dirname(path), made)
  if ('link' in entry) symlinkSync(entry.link, target)
  else if ('bytes' in entry) {
    const source = join(from, path)
    const found = lstatSync(source)
    // A device has no end, and a longer file may fill the disk.
    if (!found.isFile()) throw new Differs(`${path} is not a file`)
    const hasSize = found.size === entry.bytes
    if (hasSize && copyFile(source, target, total).sha256 === entry.sha256) return
    const what = hasSize ? 'other bytes than' : `${found.size} bytes instead of`
    throw new Differs(`${path} has ${what} the ${entry.bytes} that were written`)
  }
}

/** Creates the folders of a path and refuses links among them: a file below a link would be written elsewhere. */
function makeFolders(root: string, path: string, made: Set<string>): void {
  if (made.has(path)) return
  makeFolders(root, dirname(path), made)
  const folder = join(root, path)
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) mkdirSync(folder)
  made.add(path)
}
