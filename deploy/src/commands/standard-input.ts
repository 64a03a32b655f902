import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { bytesText } from '@gamenet/schemas'
import { FailureError } from '../config.js'
import { freeMinBytesOf } from '../disk/disk-guard.js'
import { readSpace } from '../disk/disk-space.js'
import type { Terminal } from './terminal.js'

/** Free space is checked before every this many bytes; the reserve is a multiple of it. */
const LOOK_BYTES = 64 * 2 ** 20

/**
 * Runs `use` on a temporary copy of standard input. Standard input is read to its end before any engine is opened,
 * because chDB reads it as data of its own INSERTs. Endless input is refused when the temporary directory's disk is
 * low.
 */
export async function withStandardInput<Result>(
  { input, config }: Pick<Terminal, 'input' | 'config'>,
  use: (file: string) => Promise<Result>
): Promise<Result> {
  const wanted = config().DISK_FREE_MIN_BYTES
  const directory = await mkdtemp(join(tmpdir(), 'gamenet-'))
  try {
    const file = join(directory, 'standard-input')
    const guarded = (chunks: AsyncIterable<Uint8Array>) => withSpace(chunks, directory, wanted)
    await pipeline(input, guarded, createWriteStream(file, { mode: 0o600 }))
    return await use(file)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function* withSpace(
  chunks: AsyncIterable<Uint8Array>,
  directory: string,
  wanted: number | undefined
): AsyncGenerator<Uint8Array> {
  let read = 0
  let nextLook = 0
  for await (const chunk of chunks) {
    if (read >= nextLook) {
      await requireSpace(directory, wanted, read)
      nextLook = read + LOOK_BYTES
    }
    read += chunk.byteLength
    yield chunk
  }
}

async function requireSpace(directory: string, wanted: number | undefined, read: number): Promise<void> {
  for (const { freeBytes, sizeBytes } of await readSpace([directory])) {
    const freeMinBytes = freeMinBytesOf(wanted, sizeBytes)
    if (freeBytes >= freeMinBytes) continue
    throw new FailureError(
      `Standard input is kept in ${tmpdir()} until it ends. ${bytesText(read)} have arrived; the disk has ${bytesText(freeBytes)} free, and ` +
        `${bytesText(freeMinBytes)} must stay free (DISK_FREE_MIN_BYTES). Nothing was published. Import files, or set TMPDIR to a larger disk.`
    )
  }
}
