import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { access, chmod, constants, lstat, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { flushPath, makeFolder } from '@gamenet/engines/files'
import { errorCode, parseJson, pause } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError } from '../config.js'
import { fileFailure, refuseUnusable } from './file-failure.js'
import { startOf, stateOf } from './process-state.js'

/*
 * The directory of the embedded engines belongs to one process, which holds its lock. `service.json` names that process
 * and its operator port; `format.json` names the layout and the versions that wrote it, so that an older program
 * refuses a newer directory. The schema versions of the engines are in the engines themselves.
 */

/** Incremented when an older program can no longer read a new directory. */
export const DATA_FORMAT = 1

/** Names the process that owns the directory. */
export const OWNER_FILE = 'service.json'
const FORMAT_FILE = 'format.json'
/** Exists while a backup is being restored into the directory. */
export const RESTORING_FILE = 'restoring.json'

/** Longest wait for a process that is about to release the directory, and the interval between checks. */
const HOLDER_MS_MAX = 10_000
const HOLDER_POLL_MS = 20
/** Exit code of flock(1) if another process has the lock. */
const LOCKED = 1

/** Only the service's user may read the directories: they contain seal keys, profiles and events of people. */
const PRIVATE = 0o700
const PRIVATE_FILE = 0o600
const STICKY = 0o1000
/** Subdirectories of engines, uploads, spool, datasets and answers as files. */
const SUBDIRECTORIES = ['log', 'tables', 'writes', 'uploads', 'spool', 'datasets', 'exports']

const Owner = z.object({
  pid: z.int(),
  startedAt: z.string(),
  purpose: z.enum(['run', 'command', 'restore']),
  operatorUrl: z.url().nullable(),
  operatorToken: z.string().optional(),
  /**
   * Whether the log's file may be damaged: from the start on, until the process answers and its keys are known to be
   * readable.
   */
  isSuspect: z.boolean()
})
/** A newer format has at least its number and its program. */
const Format = z.object({
  format: z.int(),
  /** Version of the program that last used the directory. */
  program: z.string(),
  /** Versions of the embedded engines, by name. */
  engines: z.record(z.string(), z.string()).catch({})
})

/** The versions that use a data directory. */
export type Versions = { readonly program: string; readonly engines: Readonly<Record<string, string>> }

export type OperatorPort = { readonly operatorUrl: string; readonly operatorToken?: string | undefined }

export type DataDirectory = {
  readonly path: string
  /** Returns the absolute path of a part of the directory. */
  part(name: string): string
  /** Records the operator address and token of the running service for the command line. */
  announce(operator: OperatorPort): Promise<void>
  /**
   * How the process before ended: `suspect`, in its start or before it knew that the log's keys are readable, as of a
   * damaged page. Absent if it ended well.
   */
  readonly unclean?: 'suspect' | 'killed'
  /** Records that the log's keys are readable. */
  trustLog(): Promise<void>
  release(): Promise<void>
}

/** `command`: an operation on the directory of a stopped service. */
type Purpose = z.infer<typeof Owner>['purpose']

/**
 * Claims a data directory for this process, and creates it if necessary. Throws a {@link FailureError} when it is in
 * use, not writable, or of a newer program. Nothing in the directory changes before its lock is held.
 * @param waitMs how long it waits for a holder other than a running service
 */
export async function claimDataDirectory(
  directory: string,
  versions: Versions,
  purpose: Purpose = 'run',
  waitMs = HOLDER_MS_MAX
): Promise<DataDirectory> {
  const path = resolve(directory)
  // A container may run the service as root on a volume of another user, so a start is only warned.
  if (purpose !== 'run') await refuseRoot(path)
  await mkdirWritable(path)
  await refuseUnusable(path, SUBDIRECTORIES)
  const lock = openSync(path, 'r')
  try {
    await takeLock(path, lock, waitMs)
    for (const folder of [await realpath(path), ...SUBDIRECTORIES.map((name) => join(path, name))])
      await makePrivate(folder)
    if (purpose !== 'restore') await refuseHalfRestored(path)
    await checkFormat(path, versions)
    const ownerFile = join(path, OWNER_FILE)
    const before = await readOwner(ownerFile)
    let me: z.input<typeof Owner> = {
      ...{ pid: process.pid, startedAt: await startOf(process.pid), purpose, operatorUrl: null },
      isSuspect: purpose === 'run'
    }
    let isTrusted = false
    const write = (owner: typeof me) => replaceFile(ownerFile, JSON.stringify(owner), PRIVATE_FILE)
    const rewrite = async (facts: Partial<typeof me>) => {
      me = { ...me, ...facts }
      await write(me)
    }
    await write(me)
    return {
      path,
      part: (name) => join(path, name),
      announce: (operator) => rewrite({ ...operator, isSuspect: before !== undefined }),
      ...(before !== undefined && { unclean: before.isSuspect ? 'suspect' : 'killed' }),
      trustLog: async () => {
        isTrusted = true
        await rewrite({ isSuspect: false })
      },
      release: async () => {
        // Until the keys of the log are known to be readable, the next start has to know of the process before.
        if (before === undefined || isTrusted) await rm(ownerFile, { force: true })
        else await write({ ...before, isSuspect: before.isSuspect || me.isSuspect })
        closeSync(lock)
      }
    }
  } catch (error) {
    closeSync(lock)
    throw error
  }
}

/** Returns the operator port of the service that runs on a data directory; undefined if none runs. */
export async function runningOperatorPort(directory: string): Promise<OperatorPort | undefined> {
  const owner = await readOwner(join(resolve(directory), OWNER_FILE))
  if (owner === undefined || (await stateOf(owner)) !== 'running') return undefined
  const { operatorUrl, operatorToken } = owner
  if (operatorUrl === null) throw new FailureError(inUse(resolve(directory), `process ${owner.pid}`))
  return { operatorUrl, operatorToken }
}

/**
 * Creates a writable data directory if necessary.
 * @returns the first created folder, undefined if all existed
 */
export async function mkdirWritable(path: string): Promise<string | undefined> {
  try {
    const there = await nearestExisting(path)
    await access(there, constants.W_OK | constants.X_OK)
    makeFolder(path, PRIVATE)
    await access(path, constants.W_OK | constants.X_OK)
    const [first] = relative(there, path).split(sep)
    return first === undefined || first === '' ? undefined : join(there, first)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOSPC' || code === 'EDQUOT') throw error
    const reason = fileFailure(error, path)?.message ?? `Give DATA_DIR a folder that this user may write (${code}).`
    throw new FailureError(`The data directory ${path} cannot be written. ${reason}`)
  }
}

/** Returns whether one path is another one, or below it, behind all links; neither has to exist. */
export async function isInside(inner: string, outer: string): Promise<boolean> {
  const [below, above] = await Promise.all([inner, outer].map(withoutLinks))
  return join(below ?? '', sep).startsWith(join(above ?? '', sep))
}

async function withoutLinks(path: string): Promise<string> {
  const there = await nearestExisting(resolve(path))
  return join(await realpath(there), relative(there, resolve(path)))
}

/** Refuses root on data of another user, whose service could not open the files that root creates. */
async function refuseRoot(path: string): Promise<void> {
  const found = await stat(join(path, FORMAT_FILE)).catch(() => stat(path).catch(() => undefined))
  if (process.getuid?.() !== 0 || found === undefined || found.uid === 0) return
  throw new FailureError(
    `The data in ${path} belong to user ${found.uid}, whose service cannot open files that root creates there. Run ` +
      `this command as that user (sudo -u '#${found.uid}'), or give the data to root (chown -R root ${path}).`
  )
}

/**
 * Removes the permissions of other users, unless the directory belongs to another user, is shared, as /tmp is, or is
 * a link.
 */
async function makePrivate(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (!found?.isDirectory() || found.uid !== process.getuid?.() || (found.mode & STICKY) !== 0) return
  if ((found.mode & 0o777) !== PRIVATE) await chmod(path, PRIVATE)
}

async function refuseHalfRestored(path: string): Promise<void> {
  const text = await readFile(join(path, RESTORING_FILE), 'utf8').catch(() => undefined)
  if (text === undefined) return
  throw new FailureError(
    `The data directory ${path} has a half-restored backup; restore it again: gamenet restore ` +
      `${text.trim() || 'DIR'}. It contains nothing else and may be removed instead.`
  )
}

async function nearestExisting(path: string): Promise<string> {
  const isThere = await access(path).then(
    () => true,
    () => false
  )
  return isThere ? path : nearestExisting(dirname(path))
}

async function checkFormat(path: string, versions: Versions): Promise<void> {
  const file = join(path, FORMAT_FILE)
  const text = await readFile(file, 'utf8').catch(() => undefined)
  // A crash can leave an empty new file; the directory is empty otherwise.
  if (text !== undefined && text !== '') refuseNewer(path, formatOf(path, file, text), versions)
  const written = JSON.stringify({ format: DATA_FORMAT, ...versions })
  if (text === written) return
  // Written before the engines are opened, because they may at once write files that older ones cannot read.
  await replaceFile(file, written)
}

function formatOf(path: string, file: string, text: string): z.infer<typeof Format> {
  const found = Format.safeParse(parseJson(text))
  if (found.success) return found.data
  throw new FailureError(
    `${file} cannot be read; the data directory ${path} is not one of this service, or it is damaged.`
  )
}

function refuseNewer(path: string, found: z.infer<typeof Format>, { program, engines }: Versions): void {
  const wayOut = 'Start the newer program, or give this one another DATA_DIR.'
  const writer = `Gamenet Stats ${found.program}`
  if (found.format > DATA_FORMAT)
    throw new FailureError(
      `The data directory ${path} has format ${found.format}, written by ${writer}; this program, ${program}, knows ` +
        `formats up to ${DATA_FORMAT}. ${wayOut}`
    )
  for (const [engine, version] of Object.entries(engines)) {
    const written = found.engines[engine]
    if (written === undefined || !isNewer(written, version)) continue
    throw new FailureError(
      `The data directory ${path} was written by ${engine} ${written} of ${writer}; this program, ${program}, has ` +
        `${engine} ${version}, which may not read it. ${wayOut}`
    )
  }
}

/** Compares the first two numbers of versions: a patch version reads the same files. */
function isNewer(version: string, than: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [thanMajor = 0, thanMinor = 0] = than.split('.').map(Number)
  return major > thanMajor || (major === thanMajor && minor > thanMinor)
}

/** Replaces a file atomically: a crash or power loss leaves the new text or the old one. */
export async function replaceFile(file: string, text: string, mode = 0o666): Promise<void> {
  const draft = `${file}.${process.pid}`
  try {
    await writeFile(draft, text, { flush: true, mode })
    await rename(draft, file)
  } finally {
    await rm(draft, { force: true })
  }
  await flushPath(dirname(file))
}

/**
 * Locks the directory until this process ends or closes the descriptor. Waits for a command, which may take a moment,
 * for a process that is not visible here, and for a dying one: after a kill, the kernel first frees gigabytes of
 * memory.
 */
async function takeLock(path: string, descriptor: number, waitMs: number): Promise<void> {
  const begun = performance.now()
  for (;;) {
    const owner = await readOwner(join(path, OWNER_FILE))
    const state = owner === undefined ? 'ended' : await stateOf(owner)
    if (state === 'ended' && tryLock(descriptor)) return
    const isService = state === 'running' && owner?.purpose === 'run'
    if (isService || performance.now() - begun > waitMs) {
      const visible = `process ${owner?.pid}${owner?.purpose === 'run' ? '' : ', which runs a command'}`
      throw new FailureError(inUse(path, state === 'ended' ? 'another process, perhaps in another container' : visible))
    }
    await pause(HOLDER_POLL_MS)
  }
}

/**
 * Returns false if another process has the lock: a process of another container is not visible by its id. Node has no
 * flock(2). The lock belongs to the open descriptor, which the command shares. Without that command (macOS), and on
 * file systems without locks, only `service.json` protects the directory.
 */
function tryLock(descriptor: number): boolean {
  const { status } = spawnSync('flock', ['-n', '3'], { stdio: ['ignore', 'ignore', 'ignore', descriptor] })
  return status !== LOCKED
}

function inUse(path: string, holder: string): string {
  return `The data directory ${path} is in use by ${holder}; stop that one, or give this one another DATA_DIR.`
}

async function readOwner(file: string): Promise<z.infer<typeof Owner> | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  return Owner.safeParse(parseJson(text)).data
}
