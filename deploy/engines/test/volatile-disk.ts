import fs, { cpSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join, relative, resolve } from 'node:path'

type Write = { readonly at: number; readonly bytes: Buffer }

/**
 * Keeps a copy of a folder in the worst state after a power loss: a file has its content of the last flush; a file that was
 * never flushed is empty. Names change at once, because a journal keeps their order. Observes this thread's synchronous calls
 * of `node:fs`, until `stop`.
 */
export const volatileDisk = (folder: string, copy: string): { readonly flushed: string[]; stop(): void } => {
  const root = resolve(folder)
  cpSync(root, copy, { recursive: true })
  const flushed: string[] = []
  const open = new Map<number, string>()
  const unflushed = new Map<string, Write[]>()
  const kept = { ...fs }
  const inCopy = (path: unknown): string | undefined => {
    const way = relative(root, resolve(String(path)))
    return way.startsWith('..') ? undefined : join(copy, way)
  }
  const both =
    <Args extends unknown[]>(original: (path: never, ...rest: Args) => unknown) =>
    (path: string, ...rest: Args) => {
      const result = original(path as never, ...rest)
      const there = inCopy(path)
      if (there !== undefined) original(there as never, ...rest)
      return result
    }
  const patched = {
    openSync: (path: string, ...rest: [fs.OpenMode, fs.Mode?]) => {
      const fd = kept.openSync(path, ...rest)
      const there = inCopy(path)
      if (there === undefined) return fd
      open.set(fd, there)
      if (!kept.existsSync(there)) kept.writeFileSync(there, '')
      return fd
    },
    closeSync: (fd: number) => {
      open.delete(fd)
      kept.closeSync(fd)
    },
    writeSync: (fd: number, buffer: Uint8Array, offset: number, length: number, at: number) => {
      const written = kept.writeSync(fd, buffer, offset, length, at)
      const there = open.get(fd)
      if (there !== undefined) {
        const bytes = Buffer.from(buffer.subarray(offset, offset + written))
        unflushed.set(there, [...(unflushed.get(there) ?? []), { at, bytes }])
      }
      return written
    },
    fsyncSync: (fd: number) => {
      kept.fsyncSync(fd)
      const there = open.get(fd)
      if (there === undefined) return
      flushed.push(relative(copy, there))
      apply(there, unflushed.get(there) ?? [])
      unflushed.delete(there)
    },
    renameSync: (from: string, to: string) => {
      kept.renameSync(from, to)
      const [before, after] = [inCopy(from), inCopy(to)]
      if (before === undefined || after === undefined) return
      kept.renameSync(before, after)
      const writes = unflushed.get(before)
      unflushed.delete(before)
      unflushed.delete(after)
      if (writes !== undefined) unflushed.set(after, writes)
    },
    unlinkSync: both(kept.unlinkSync),
    mkdirSync: both(kept.mkdirSync),
    rmdirSync: both(kept.rmdirSync),
    truncateSync: both(kept.truncateSync),
    ftruncateSync: (fd: number, length: number) => {
      kept.ftruncateSync(fd, length)
      const there = open.get(fd)
      if (there !== undefined) kept.truncateSync(there, length)
    }
  }
  const apply = (there: string, writes: readonly Write[]): void => {
    if (writes.length === 0) return
    const fd = kept.openSync(there, 'r+')
    for (const { at, bytes } of writes) kept.writeSync(fd, bytes, 0, bytes.length, at)
    kept.closeSync(fd)
  }
  Object.assign(fs, patched)
  syncBuiltinESMExports()
  return {
    flushed,
    stop: () => {
      for (const name of Object.keys(patched) as (keyof typeof patched)[]) Object.assign(fs, { [name]: kept[name] })
      syncBuiltinESMExports()
    }
  }
}
