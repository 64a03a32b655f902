import { execFile } from 'node:child_process'
import { constants, open } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { errorCode } from '@gamenet/schemas'
import { ended } from './slots.js'

/** A named pipe: a statement writes to its path, and the reader reads at its own pace. */
export type Pipe = {
  readonly path: string
  /**
   * Returns the output of the statement. It ends when the pipe has ended and `done`, the statement, has resolved; it fails
   * if `done` rejects.
   */
  until(done: Promise<unknown>): Readable
}

/** Named pipes; each serves one statement at a time. */
export type Pipes = {
  /** Opens the reading end of a pipe. Its previous statement must have ended. */
  open(index: number): Promise<Pipe>
  /** Removes the names. */
  remove(): Promise<void>
}

const run = promisify(execFile)
const openFile = promisify(open)

/**
 * Creates named pipes in a new folder. Node has no function for it, and starting a process from one of 1 GiB stops the main
 * thread for 100 ms. So it happens once, before the engine allocates memory, and not per statement; and again for a pipe
 * that is missing, because cleaners of temporary files remove old ones.
 */
export const makePipes = async (count: number): Promise<Pipes> => {
  const folders: string[] = []
  // Never a former folder: another user of the machine may have made one in its place.
  const make = async (names: readonly string[]): Promise<string[]> => {
    const folder = await mkdtemp(join(tmpdir(), 'gamenet-'))
    folders.push(folder)
    const made = names.map((name) => join(folder, name))
    await run('mkfifo', ['-m', '600', ...made])
    return made
  }
  const paths = await make(Array.from({ length: count }, (_, n) => String(n)))
  return {
    open: (index) =>
      openPipe(paths[index] ?? '').catch(async (error: unknown) => {
        if (errorCode(error) !== 'ENOENT') throw error
        const [path = ''] = await make([String(index)])
        paths[index] = path
        return openPipe(path)
      }),
    remove: async () => {
      for (const folder of folders) await rm(folder, { recursive: true, force: true })
    }
  }
}

const openPipe = async (path: string): Promise<Pipe> => {
  // A plain open would wait for the writer.
  const fd = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const reader = new Socket({ fd, readable: true, writable: false })
  reader.on('error', () => undefined)
  return {
    path,
    until: (done) => {
      const body = Readable.from(readUntil(reader, done), { objectMode: false })
      // Without a writer the pipe would never end.
      done.catch((error: Error) => reader.destroy(error))
      // The engine would wait for the closed reader forever, and could not even be killed: so the rest is read and dropped.
      body.once('close', () => {
        reader.resume()
        void ended(done).then(() => reader.destroy())
      })
      return body
    }
  }
}

async function* readUntil(reader: Socket, done: Promise<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of reader.iterator({ destroyOnReturn: false })) yield chunk as Uint8Array
  await done
}
