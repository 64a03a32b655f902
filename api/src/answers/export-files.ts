import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { errorCode, Refusal } from '@gamenet/schemas'
import type { Answer } from './answer-cache.js'

/*
 * export      an answer as a file. It is whole before its first byte is sent, so that no reader holds the engine: in
 *             memory if it is small, else in a temporary file
 * kept        an export that nobody reads now. The next request, such as one for a range, gets the same bytes
 */

/** Larger exports are in temporary files. The system takes as much at once for a client that reads nothing. */
const MEMORY_BYTES_MAX = 64 * 1024
/** Temporary files at once: each takes a descriptor. */
const FILES_MAX = 128
/** The disk is asked for space again after so many bytes. */
const SPACE_BYTES = 64 * 1024 * 1024
const CHUNK_BYTES = 64 * 1024
const KEPT_MS = 60_000
const DIGEST_CHARACTERS = 16
const RETRY_AFTER_SECONDS = 10

export type ExportSettings = {
  /** A folder of this process alone. What a former process left in it is removed. */
  readonly directory: string
  /** Of all exports that are being made, read or kept. */
  readonly bytesMax: number
  /** Rejects while the disk is low, or would be after so many bytes more. */
  requireSpace(bytes: number): Promise<void>
}

/** The output of the engine, and facts about the answer. */
export type ExportSource = {
  readonly body: Readable
  /** Those of the answer in JSON that follow from the data. */
  readonly headers: Answer['headers'] | undefined
  /** Whether the next request gets the same bytes. */
  readonly isKept: boolean
}

/** A whole export. */
export type ExportFile = Omit<ExportSource, 'body'> & {
  readonly bytes: number
  /** Of its bytes. */
  readonly digest: string
  /** Returns these bytes, the last one included. */
  read(first: number, last: number): Readable
}

type Entry = {
  readonly abort: AbortController
  readonly file: Promise<ExportFile>
  users: number
  bytes: number
  /** Whole, and worth keeping. */
  isKept: boolean
  handle?: FileHandle
  expiry?: NodeJS.Timeout
}

/** Makes exports, and keeps them for a short time. */
export class ExportFiles {
  readonly #settings: ExportSettings
  readonly #entries = new Map<string, Entry>()
  #bytes = 0
  /** Exports that found no room since the start. */
  refused = 0

  constructor(settings: ExportSettings) {
    this.#settings = settings
  }

  /** Bytes of all exports that are being made, read or kept. */
  get bytes(): number {
    return this.#bytes
  }

  /** Removes what a killed process left. */
  async removeOld(): Promise<void> {
    await rm(this.#settings.directory, { recursive: true, force: true })
  }

  /**
   * Returns the export with an identity; makes it if there is none. Concurrent requests share the work, which ends
   * when all of them have. It can be read until `ended` aborts.
   */
  async open(
    identity: string,
    ended: AbortSignal,
    make: (signal: AbortSignal) => Promise<ExportSource>
  ): Promise<ExportFile> {
    const entry = this.#entries.get(identity) ?? this.#begin(identity, make)
    clearTimeout(entry.expiry)
    entry.users += 1
    const release = () => {
      entry.users -= 1
      if (entry.users === 0) this.#unused(identity, entry)
    }
    if (ended.aborted) release()
    else ended.addEventListener('abort', release, { once: true })
    return await entry.file
  }

  /** Ends everything. */
  async close(): Promise<void> {
    for (const [identity, entry] of this.#entries) await this.#drop(identity, entry)
  }

  #begin(identity: string, make: (signal: AbortSignal) => Promise<ExportSource>): Entry {
    const abort = new AbortController()
    const made = async () => {
      try {
        return await this.#make(entry, await make(abort.signal))
      } catch (error) {
        await this.#drop(identity, entry)
        throw isFull(error) ? new Refusal('disk_full', [], { cause: error }) : error
      }
    }
    const entry: Entry = { abort, file: Promise.resolve().then(made), users: 0, bytes: 0, isKept: false }
    this.#entries.set(identity, entry)
    return entry
  }

  async #make(entry: Entry, { body, ...about }: ExportSource): Promise<ExportFile> {
    const hash = createHash('sha256')
    let memory: Buffer[] = []
    let spaceBytes = 0
    for await (const chunk of body as AsyncIterable<Buffer>) {
      entry.abort.signal.throwIfAborted()
      hash.update(chunk)
      memory.push(chunk)
      entry.bytes += chunk.length
      this.#bytes += chunk.length
      await this.#makeRoom()
      if (entry.bytes <= MEMORY_BYTES_MAX) continue
      if (entry.bytes > spaceBytes) {
        await this.#requireSpace()
        spaceBytes += SPACE_BYTES
      }
      const handle = entry.handle ?? (await this.#createFile(entry))
      await handle.writeFile(Buffer.concat(memory))
      memory = []
    }
    entry.abort.signal.throwIfAborted()
    const { bytes, handle } = entry
    entry.isKept = about.isKept && handle !== undefined
    const whole = Buffer.concat(memory)
    return {
      ...about,
      bytes,
      digest: hash.digest('base64url').slice(0, DIGEST_CHARACTERS),
      read: (first, last) => {
        const parts = handle === undefined ? [whole.subarray(first, last + 1)] : readOf(handle, first, last)
        return Readable.from(parts, { objectMode: false })
      }
    }
  }

  /** Drops exports that nobody reads, the oldest first, until the others have room. */
  async #makeRoom(): Promise<void> {
    const files = () => [...this.#entries.values()].filter(({ handle }) => handle !== undefined).length
    const isOver = () => this.#bytes > this.#settings.bytesMax || files() > FILES_MAX
    for (const [identity, entry] of this.#entries) {
      if (!isOver()) return
      if (entry.users === 0) await this.#drop(identity, entry)
    }
    if (!isOver()) return
    this.refused += 1
    throw new Refusal('exports_full', [], { retryAfterSeconds: RETRY_AFTER_SECONDS })
  }

  async #requireSpace(): Promise<void> {
    const refuse = (cause: unknown) => Promise.reject(new Refusal('disk_full', [], { cause }))
    await this.#settings.requireSpace(SPACE_BYTES).catch(refuse)
  }

  /**
   * Gives an export a file without a name: the system frees it with its last handle, also when the process is killed.
   */
  async #createFile(entry: Entry): Promise<FileHandle> {
    const { directory } = this.#settings
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const path = join(directory, randomUUID())
    entry.handle = await open(path, 'wx+', 0o600)
    await rm(path)
    await this.#makeRoom()
    return entry.handle
  }

  #unused(identity: string, entry: Entry): void {
    const drop = () => void this.#drop(identity, entry)
    if (entry.isKept) entry.expiry = setTimeout(drop, KEPT_MS).unref()
    else drop()
  }

  async #drop(identity: string, entry: Entry): Promise<void> {
    if (this.#entries.get(identity) === entry) this.#entries.delete(identity)
    clearTimeout(entry.expiry)
    entry.abort.abort(new Error('no client waits for the export'))
    this.#bytes -= entry.bytes
    entry.bytes = 0
    const { handle } = entry
    if (handle === undefined) return
    delete entry.handle
    await handle.close()
  }
}

async function* readOf(handle: FileHandle, first: number, last: number): AsyncGenerator<Buffer> {
  for (let at = first; at <= last; ) {
    const length = Math.min(CHUNK_BYTES, last + 1 - at)
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, at)
    if (bytesRead === 0) throw new Error('A temporary file ended early.')
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}

const isFull = (error: unknown): boolean => /^(ENOSPC|EDQUOT|EROFS)$/.test(errorCode(error))
