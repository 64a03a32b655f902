import fs, { rmSync } from 'node:fs'
import { join } from 'node:path'
import { PGlite, type PGliteOptions } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'

/**
 * PGlite's own, without `-F` (no flushes). Of the ways to flush the write-ahead log, the module has only fsync. Of that log, a
 * checkpoint keeps 1 GB as PostgreSQL has it, and all of it is read at a start after a crash.
 */
const START_PARAMS = [
  ...PGlite.defaultStartParams.filter((param) => param !== '-F'),
  ...['-c', 'wal_sync_method=fsync', '-c', 'max_wal_size=256MB']
]

/**
 * PGlite on a directory of this machine, safe against a loss of power: every requested flush reaches the disk, so that a
 * commit is answered when the disk has it. `onPanic` gets PostgreSQL's reason for ending itself and must end the thread:
 * PGlite's loop would run the ended PostgreSQL again, forever.
 */
export const openFlushing = async (
  dir: string,
  options: PGliteOptions = {},
  onPanic?: (reason: string) => void
): Promise<PGlite> => {
  // The caller owns the directory. A loss of power leaves the file empty, which PostgreSQL refuses.
  rmSync(join(dir, 'postmaster.pid'), { force: true })
  const files = new FlushingFiles(dir, onPanic)
  try {
    return await PGlite.create({ ...options, fs: files, startParams: START_PARAMS })
  } catch (error) {
    throw files.fault === undefined ? error : new Error(files.fault, { cause: error })
  }
}

type Init = Awaited<ReturnType<NodeFS['init']>>
/** What Emscripten's file system is made of, as far as it is used here. */
type Module = {
  readonly NODEFS: { readonly stream_ops: { fsync?: (stream: { readonly nfd: number }) => number } }
  readonly FS: { readonly ErrnoError: new (errno: number) => Error }
}

/** EIO, in WASI's numbers. */
const INPUT_OUTPUT_ERROR = 29

/** Files of a directory. Emscripten's own have no fsync: it says that all is well, and does nothing. */
class FlushingFiles extends NodeFS {
  /** The last line of PostgreSQL's log on an error that ended it. */
  fault: string | undefined
  readonly #onPanic: ((reason: string) => void) | undefined

  constructor(dir: string, onPanic: ((reason: string) => void) | undefined) {
    super(dir)
    this.#onPanic = onPanic
  }

  override async init(...given: Parameters<NodeFS['init']>): Promise<Init> {
    const { emscriptenOpts } = await super.init(...given)
    const { printErr } = emscriptenOpts
    const addFsync = ({ NODEFS, FS }: Module): void => {
      NODEFS.stream_ops.fsync = ({ nfd }) => {
        try {
          fs.fsyncSync(nfd)
          return 0
        } catch {
          // PostgreSQL ends itself: the state on disk is now unknown.
          throw new FS.ErrnoError(INPUT_OUTPUT_ERROR)
        }
      }
    }
    return {
      emscriptenOpts: {
        ...emscriptenOpts,
        preRun: [...(emscriptenOpts.preRun ?? []), addFsync as never],
        printErr: (line: string) => {
          this.fault = /\b(?:PANIC|FATAL): .*/.exec(line)?.[0] ?? this.fault
          printErr?.(line)
        },
        onAbort: () => this.#onPanic?.(this.fault ?? 'PostgreSQL ended itself')
      }
    }
  }
}
