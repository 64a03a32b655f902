import { LOG_FREE_BYTES_MIN } from '@gamenet/engines/files'
import { bytesText, errorMessage, pause } from '@gamenet/schemas'
import { FailureError } from '../config.js'
import { type DiskSpace, freeText, type ReadSpace, readSpace } from './disk-space.js'
import { readOnlySentence } from './file-failure.js'

const GIB = 1024 ** 3
/** The default minimum of free space; a twentieth of a small disk. */
const FREE_MIN_BYTES = GIB
const FREE_MIN_SHARE = 0.05
/** Hysteresis: space is sufficient again when a quarter more than the minimum is free. */
const ROOM_AGAIN = 1.25
/**
 * With less free space the log refuses a commit of 1 MiB, and PostgreSQL may find no space for a segment of its log, of
 * 16 MiB.
 */
export const FULL_BYTES = LOG_FREE_BYTES_MIN + 2 * 1024 * 1024
/** Interval of checks. An import writes about 10 MB a second, far less per interval than the free minimum. */
const LOOK_MS = 1000

/** One disk with its minimum. */
export type GuardedDisk = DiskSpace & {
  /** Minimum of free bytes; 0 if there is none. */
  readonly freeMinBytes: number
  readonly isLow: boolean
  /** Writes fail, or soon will: also without a minimum. */
  readonly isFull: boolean
}

/**
 * Keeps a part of the data directory's disks free. On a low disk, deferrable work is not started (imports, rebuilds,
 * backups, merges of the embedded ClickHouse), so that scrapes, ratings and the engines' own bookkeeping still have
 * space.
 */
export type DiskGuard = {
  /** Returns the result of the last check, at most a second old. For callers that cannot wait for a check. */
  isLow(): boolean
  /** As `isLow`, for a full disk. */
  isFull(): boolean
  /**
   * Checks now. Throws a {@link FailureError} if a disk is low or would be after `bytes` more.
   * @param what the refused work, as the beginning of a sentence: `The import of counts.csv`
   */
  requireSpace(bytes: number, what: string): Promise<void>
  /** Resolves when no disk is low; rejects with the signal's reason. */
  whenSpace(signal: AbortSignal): Promise<void>
  /** Checks all disks now. */
  look(): Promise<readonly GuardedDisk[]>
  close(): Promise<void>
}

export type DiskGuardOptions = {
  /** Directories whose disks are guarded; without any, no disk is ever low. */
  readonly paths: readonly string[]
  /** Minimum of free bytes; 0 disables the guard. Default: 1 GiB, on small disks a twentieth. */
  readonly freeMinBytes: number | undefined
  /** Called at each check while a disk is low, because newly created tables merge again. */
  readonly stopMerges: () => Promise<void>
  readonly startMerges: () => Promise<void>
  readonly warn: (sentence: string) => void
  readonly readSpace?: ReadSpace
  readonly lookMs?: number
}

/** Returns the minimum of free bytes for a disk of this size. */
export function freeMinBytesOf(wanted: number | undefined, sizeBytes: number): number {
  return wanted ?? Math.min(FREE_MIN_BYTES, Math.floor(sizeBytes * FREE_MIN_SHARE))
}

/** Opens the guard; checks once before it resolves. */
export async function openDiskGuard(options: DiskGuardOptions): Promise<DiskGuard> {
  const watch = new DiskWatch(options)
  if (options.paths.length > 0) await watch.start()
  return {
    isLow: () => watch.isLow,
    isFull: () => watch.isFull,
    look: () => watch.look(),
    requireSpace: async (bytes, what) => {
      const disks = await watch.look()
      const full = disks.find(({ isLow, freeBytes, freeMinBytes }) => isLow || freeBytes - bytes < freeMinBytes)
      if (full === undefined || full.freeMinBytes === 0) return
      throw new FailureError(`${what} ${refusalOf(full, bytes)}`)
    },
    whenSpace: async (signal) => {
      while (watch.isLow) {
        signal.throwIfAborted()
        await pause(options.lookMs ?? LOOK_MS, signal)
      }
    },
    close: () => watch.close()
  }
}

function refusalOf(disk: GuardedDisk, bytes: number): string {
  if (disk.isReadOnly) return `is refused. ${readOnlySentence(disk.path, disk.path)}`
  const needed = bytes === 0 ? '' : ` and takes ${bytesText(bytes)}`
  return (
    `is refused${needed}: the disk of ${disk.path} has ${freeText(disk)}, and ${bytesText(disk.freeMinBytes)} stay ` +
    `free for urgent writes (DISK_FREE_MIN_BYTES). Free some space and repeat it; completed work is kept.`
  )
}

class DiskWatch {
  readonly #options: DiskGuardOptions
  readonly #stopping = new AbortController()
  /** Paths of the disks that were low at the last check. */
  #low: ReadonlySet<string> = new Set()
  #full: ReadonlySet<string> = new Set()
  #areMergesStopped = false
  #trouble: string | undefined
  #watching: Promise<void> = Promise.resolve()

  constructor(options: DiskGuardOptions) {
    this.#options = options
  }

  get isLow(): boolean {
    return this.#low.size > 0
  }

  get isFull(): boolean {
    return this.#full.size > 0
  }

  async start(): Promise<void> {
    await this.#round()
    this.#watching = this.#watch()
  }

  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#watching
  }

  async look(): Promise<readonly GuardedDisk[]> {
    const { paths, freeMinBytes: wanted } = this.#options
    const spaces = await (this.#options.readSpace ?? readSpace)(paths)
    const disks = spaces.map((space) => {
      const freeMinBytes = freeMinBytesOf(wanted, space.sizeBytes)
      const wasLow = this.#low.has(space.path)
      const isLow = freeMinBytes > 0 && space.freeBytes < freeMinBytes * (wasLow ? ROOM_AGAIN : 1)
      return { ...space, freeMinBytes, isLow, isFull: space.freeBytes < FULL_BYTES }
    })
    this.#notify(disks)
    this.#low = new Set(disks.filter(({ isLow }) => isLow).map(({ path }) => path))
    this.#full = new Set(disks.filter(({ isFull }) => isFull).map(({ path }) => path))
    return disks
  }

  /** Logs once when a disk becomes low or full, and once when it has space again. */
  #notify(disks: readonly GuardedDisk[]): void {
    for (const disk of disks) {
      const { path, isLow, isFull, freeMinBytes } = disk
      const free = `the disk of ${path} has ${freeText(disk)}`
      if (disk.isReadOnly) {
        if (!this.#full.has(path)) this.#options.warn(readOnlySentence(path, path))
        continue
      }
      if (isFull && !this.#full.has(path))
        this.#options.warn(
          `Full disk: ${free}. Writes fail or soon will; nothing acknowledged is lost. Free some space.`
        )
      if (isLow === this.#low.has(path)) continue
      this.#options.warn(
        isLow
          ? `Low disk: ${free}; ${bytesText(freeMinBytes)} must stay free (DISK_FREE_MIN_BYTES). Imports and merges ` +
              `of tables wait for free space; everything else continues.`
          : `Disk space is sufficient again: ${free}. Imports and merges of tables continue.`
      )
    }
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await pause(this.#options.lookMs ?? LOOK_MS, signal, { ref: false })
      if (!signal.aborted) await this.#round()
    }
  }

  /** Checks the disk and stops or starts merges accordingly; a failure is logged once and retried at the next check. */
  async #round(): Promise<void> {
    try {
      await this.look()
      if (this.isLow) {
        this.#areMergesStopped = true
        await this.#options.stopMerges()
      } else if (this.#areMergesStopped) {
        await this.#options.startMerges()
        this.#areMergesStopped = false
      }
      this.#trouble = undefined
    } catch (error) {
      const trouble = errorMessage(error)
      if (trouble !== this.#trouble) this.#options.warn(`The free space of the disk cannot be checked: ${trouble}`)
      this.#trouble = trouble
    }
  }
}
