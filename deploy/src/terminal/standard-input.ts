import { tmpdir } from 'node:os'
import { bytesText, isFailure } from '@gamenet/schemas'
import { FailureError, UsageError } from '../config.js'
import { freeMinBytesOf } from '../data-directory/disk-guard.js'
import { freeText, readSpace } from '../data-directory/disk-space.js'
import type { Terminal } from './terminal.js'

/** Free space is checked before every this many bytes; the reserve is a multiple of it. */
const LOOK_BYTES = 64 * 2 ** 20

/**
 * Runs `use` on a temporary copy of standard input. Standard input is read to its end before any engine is opened;
 * `openChdb` replaces it. Endless input is refused like an endless file, or when the temporary
 * directory's disk is low.
 */
export async function withStandardInput<Result>(
  { input, config }: Pick<Terminal, 'input' | 'config'>,
  use: (file: string) => Promise<Result>
): Promise<Result> {
  const wanted = config().DISK_FREE_MIN_BYTES
  const { withImportFile } = await import('@gamenet/ingest')
  const { signal } = new AbortController()
  try {
    return await withImportFile(withSpace(input, tmpdir(), wanted), 'Standard input', { signal }, ({ path }) =>
      use(path)
    )
  } catch (error) {
    throw isFailure(error, 'import_refused') ? new UsageError(error.message) : error
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
  for (const disk of await readSpace([directory])) {
    const freeMinBytes = freeMinBytesOf(wanted, disk.sizeBytes)
    if (disk.freeBytes >= freeMinBytes) continue
    throw new FailureError(
      `Standard input is kept in ${tmpdir()} until it ends. ${bytesText(read)} have arrived; the disk has ` +
        `${freeText(disk)}, and ${bytesText(freeMinBytes)} must stay free (DISK_FREE_MIN_BYTES). Nothing was ` +
        `published. Import files, or set TMPDIR to a larger disk.`
    )
  }
}
