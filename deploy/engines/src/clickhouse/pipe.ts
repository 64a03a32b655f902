import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { constants, open } from 'node:fs'
import { rm } from 'node:fs/promises'
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

const run = promisify(execFile)
const openFile = promisify(open)

/** Opens a pipe that exists until its statement has ended. */
export const openPipe = async (folder = tmpdir()): Promise<Pipe> => {
  const path = join(folder, `gamenet-${randomUUID()}`)
  // Node has no function for it.
  await run('mkfifo', ['-m', '600', path])
  // A plain open would wait for the writer.
  const fd = await openFile(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const reader = new Socket({ fd, readable: true, writable: false })
  reader.on('error', () => undefined)
  const remove = () => rm(path, { force: true })
  return {
    path,
    until: (done) => {
      const body = Readable.from(readUntil(reader, done), { objectMode: false })
      done.then(remove, (error: Error) => {
        // Without a writer the pipe would never end.
        reader.destroy(error)
        return remove()
      })
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
