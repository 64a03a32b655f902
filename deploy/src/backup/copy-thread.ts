import { createHash } from 'node:crypto'
import {
  appendFileSync,
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  symlinkSync,
  writeSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { parentPort } from 'node:worker_threads'
import { errorCode, openCalls } from '@gamenet/schemas'
import { Entry } from './manifest.js'

/*
 * This thread copies and hashes files, so that the service does not wait for the disk. It holds one mebibyte of one file at
 * a time.
 */

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
  /** How a file differs from the list; then the result is invalid. */
  readonly differs: string | null
}

export type CopyThread = { copy(request: CopyRequest): Copied }
export type CopyHost = {
  /** Called with the number of bytes copied since the last call. */
  copied(bytes: number): void
}

const CHUNK_BYTES = 1024 * 1024
const REPORT_BYTES = 16 * CHUNK_BYTES

class Differs extends Error {}

const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
const total = { files: 0, bytes: 0 }
let unreported = 0

if (parentPort === null) throw new Error('this file runs only as a worker thread')
const host = openCalls<CopyHost>(parentPort, { copy } satisfies CopyThread)

function copy(request: CopyRequest): Copied {
  try {
    if (request.kind === 'trees') copyTrees(request)
    else copyListed(request)
    host.notify('copied', unreported)
    return { ...total, differs: null }
  } catch (error) {
    if (!(error instanceof Differs)) throw error
    return { files: 0, bytes: 0, differs: error.message }
  }
}

function copyTree(root: string, from: string, to: string, add: (entry: Entry) => void): void {
  const found = lstatSync(from)
  if (found.isSymbolicLink()) add({ path: to, link: readlinkSync(from) })
  else if (found.isFile()) add({ path: to, ...copyFile(from, join(root, to)) })
  else if (found.isDirectory()) {
    const names = readdirSync(from)
    if (names.length === 0) add({ path: to, isFolder: true })
    for (const name of names) copyTree(root, join(from, name), `${to}/${name}`, add)
  }
}

function copyFile(from: string, to: string): { bytes: number; sha256: string } {
  mkdirSync(dirname(to), { recursive: true })
  const source = openSync(from, 'r')
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
        count(read)
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

function count(bytes: number): void {
  total.bytes += bytes
  unreported += bytes
  if (unreported < REPORT_BYTES) return
  host.notify('copied', unreported)
  unreported = 0
}

function copyTrees({ root, list, trees }: Extract<CopyRequest, { kind: 'trees' }>): void {
  const lines: string[] = []
  for (const { from, to } of trees) {
    copyTree(root, from, to, (entry) => {
      lines.push(`${JSON.stringify(entry)}\n`)
      if (lines.length >= 1000) appendFileSync(list, lines.splice(0).join(''))
    })
  }
  appendFileSync(list, lines.join(''))
}

/** The list's hash was verified, yet a path that leads out of the root is refused. */
function copyListed({ list, from, root }: Extract<CopyRequest, { kind: 'listed' }>): void {
  for (const line of readFileSync(list, 'utf8').split('\n')) {
    if (line === '') continue
    const entry = Entry.parse(JSON.parse(line))
    const { path } = entry
    if (path.startsWith('/') || path.split('/').includes('..')) throw new Differs(`${path} leads out of it`)
    const target = join(root, path)
    if ('isFolder' in entry) mkdirSync(target, { recursive: true })
    else if ('link' in entry) {
      mkdirSync(dirname(target), { recursive: true })
      symlinkSync(entry.link, target)
    } else {
      const copied = copyPresentFile(join(from, path), target, path)
      if (copied.bytes !== entry.bytes || copied.sha256 !== entry.sha256) {
        const what = copied.bytes === entry.bytes ? 'other bytes than' : `${copied.bytes} bytes instead of`
        throw new Differs(`${path} has ${what} the ${entry.bytes} that were written`)
      }
    }
  }
}

function copyPresentFile(from: string, to: string, path: string): { bytes: number; sha256: string } {
  try {
    return copyFile(from, to)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw new Differs(`${path} is missing`)
    throw error
  }
}
