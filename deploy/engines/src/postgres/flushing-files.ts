import fs, { rmSync } from 'node:fs'
import { join } from 'node:path'
import { PGlite, type PGliteOptions } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'

/**
 * PGlite's parameters without `-F` (no flushes). The module has only fsync to flush the write-ahead log. The
 * default of 128 MB of buffers takes a fifth of a start to prepare; the page cache holds the same pages. A recycled
 * file of the log would keep its content, such as that of erased rows, until it is written again.
 */
const START_PARAMS = [
  ...PGlite.defaultStartParams.filter((param) => param !== '-F'),
  ...['-c', 'wal_sync_method=fsync', '-c', 'shared_buffers=32MB', '-c', 'wal_recycle=off']
]

/**
 * Opens PGlite on a directory of this machine, safe against power loss: every requested flush reaches the disk, so a
 * commit is acknowledged when it is on the disk. `onPanic` gets PostgreSQL's reason for ending itself and must end the
 * thread: PGlite's loop would run the ended PostgreSQL again, forever.
 */
export const openFlushing = async (
  dir: string,
  options: PGliteOptions = {},
  onPanic?: (reason: string) => void
): Promise<PGlite> => {
  // The caller owns the directory. A power loss leaves the file empty, which PostgreSQL refuses.
  rmSync(join(dir, 'postmaster.pid'), { force: true })
  // Of a query that a crash interrupted; a server's postmaster removes it.
  rmSync(join(dir, 'base', 'pgsql_tmp'), { recursive: true, force: true })
  const files = new FlushingFiles(dir, onPanic)
  try {
    return await PGlite.create({ ...options, fs: files, startParams: START_PARAMS })
  } catch (error) {
    throw files.fault === undefined ? error : new Error(files.fault, { cause: error })
  }
}

type Init = Awaited<ReturnType<NodeFS['init']>>
/** The parts of Emscripten's file system in use. */
type Module = {
  readonly NODEFS: {
    readonly stream_ops: { fsync?: (stream: { readonly nfd: number }) => number }
    readonly node_ops: {
      mknod: (parent: object, name: string, mode: number, device: number) => object
      setattr: (node: object, attributes: { readonly mode?: number }) => void
    }
  }
  readonly FS: {
    readonly ErrnoError: new (errno: number) => Error
    lookupNode(parent: object, name: string): object
    destroyNode(node: object): void
  }
}

/** EIO in WASI's numbers. */
const INPUT_OUTPUT_ERROR = 29

/**
 * Files of a directory. Emscripten's own fsync does nothing and reports success. A file that could not be created, such
 * as on a disk without inodes, stays in its table of files, so that each later creation would fail because the file
 * exists.
 */
class FlushingFiles extends NodeFS {
  /** The last line of PostgreSQL's log before a fatal error, and the detail that names the file. */
  fault: string | undefined
  readonly #onPanic: ((reason: string) => void) | undefined

  constructor(dir: string, onPanic: ((reason: string) => void) | undefined) {
    super(dir)
    this.#onPanic = onPanic
  }

  override async init(...given: Parameters<NodeFS['init']>): Promise<Init> {
    const { emscriptenOpts } = await super.init(...given)
    const { printErr } = emscriptenOpts
    const mend = ({ NODEFS, FS }: Module): void => {
      const { mknod, setattr } = NODEFS.node_ops
      // Emscripten gives a created file the mode of the call, up to 0666, whatever the mask of the process.
      NODEFS.node_ops.setattr = (node, { mode, ...others }) =>
        setattr(node, mode === undefined ? others : { ...others, mode: mode & ~0o077 })
      NODEFS.node_ops.mknod = (parent, name, mode, device) => {
        try {
          return mknod(parent, name, mode, device)
        } catch (error) {
          FS.destroyNode(FS.lookupNode(parent, name))
          throw error
        }
      }
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
        preRun: [...(emscriptenOpts.preRun ?? []), mend as never],
        printErr: (line: string) => {
          const fault = /\b(?:PANIC|FATAL): .*/.exec(line)?.[0]
          const detail = /\bDETAIL: .*/.exec(line)?.[0]
          if (fault !== undefined) this.fault = fault
          else if (this.fault !== undefined && detail !== undefined) this.fault += ` ${detail}`
          printErr?.(line)
        },
        onAbort: () => this.#onPanic?.(this.fault ?? 'PostgreSQL ended itself')
      }
    }
  }
}
