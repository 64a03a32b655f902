import { execFile } from 'node:child_process'
import { constants, open } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { ended } from './slots.js'

/** A named pipe: what one statement writes to its path is read here, at the reader's pace. */
export type Pipe = {
  readonly path: string
  /**
   * Returns what the statement writes. It ends when the pipe has ended and `done`, the statement, has resolved; it fails
   * with `done`.
   */
  until(done: Promise<unknown>): Readable
}

/** Named pipes for statements, each for one at a time. */
export type Pipes = {
  /** Opens the reading end of a pipe, whose last statement has ended. */
  open(index: number): Promise<Pipe>
  /** Removes the names. */
  remove(): Promise<void>
}

const run = promisify(execFile)
const openFile = promisify(open)

/**
 * Makes named pipes in a folder of their own. Node has no function for it, and starting a process stops the main thread for
 * 100 ms when this one has 1 GiB: so once, before the engine takes memory, instead of for each statement.
 */
export const makePipes = async (count: number): Promise<Pipes> => {
  const folder = await mkdtemp(join(tmpdir(), 'gamenet-'))
  const paths = Array.from({ length: count }, (_, n) => join(folder, String(n)))
  await run('mkfifo', ['-m', '600', ...paths])
  return {
    open: (index) => openPipe(paths[index] ?? ''),
    remove: () => rm(folder, { recursive: true, force: true })
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
      // The engine would wait forever for a reader that has left, even to be killed: the rest is read and dropped.
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
