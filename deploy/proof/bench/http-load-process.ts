import { connect, type Socket } from 'node:net'
import type { Round } from './http-load.js'

/*
 * A cheap client, so that the server is the bottleneck: it checks only the status and length of each answer. Bodies need a
 * Content-Length (no chunks).
 */

process.on('message', (round) => {
  void measure(round as Round).then(
    (rate) => process.send?.({ rate }),
    (error: unknown) => process.send?.({ error: String(error) })
  )
})
process.on('disconnect', () => process.exit(0))

async function measure(round: Round): Promise<number> {
  const begun = performance.now()
  const counts = await Promise.all(Array.from({ length: round.connections }, () => requestRepeatedly(round, begun)))
  return (counts.reduce((sum, count) => sum + count, 0) / (performance.now() - begun)) * 1000
}

/** Returns the number of answers on one connection until `ms` have passed since `begun`. */
function requestRepeatedly({ port, path, headers, ms }: Round, begun: number): Promise<number> {
  const lines = Object.entries({ Host: `127.0.0.1:${port}`, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`
  )
  const request = Buffer.from(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let answers = 0
    let bodyBytes: number | undefined
    let held: Buffer | undefined
    /** Bytes of the answer still to come; undefined until its headers are complete. */
    let missing: number | undefined
    const fail = (why: string) => {
      socket.destroy()
      reject(new Error(`${path}: ${why}`))
    }
    socket.on('connect', () => socket.write(request))
    socket.on('error', (error) => fail(error.message))
    socket.on('close', () => fail('the connection was closed'))
    socket.on('data', (chunk: Buffer) => {
      if (missing === undefined) {
        const bytes = held === undefined ? chunk : Buffer.concat([held, chunk])
        const end = bytes.indexOf('\r\n\r\n')
        if (end < 0) {
          held = bytes
          return
        }
        held = undefined
        if (!bytes.toString('latin1', 0, 20).startsWith('HTTP/1.1 200 ')) {
          return fail(`expected 200, got ${bytes.toString('latin1', 0, 200)}`)
        }
        bodyBytes ??= lengthOf(bytes.toString('latin1', 0, end))
        if (bodyBytes === undefined) return fail('the answer has no Content-Length')
        missing = bodyBytes - (bytes.length - end - 4)
      } else {
        missing -= chunk.length
      }
      if (missing > 0) return
      if (missing < 0) return fail('an answer is longer than the first one')
      missing = undefined
      answers += 1
      if (performance.now() - begun < ms) {
        socket.write(request)
        return
      }
      socket.removeAllListeners('close')
      socket.destroy()
      resolve(answers)
    })
  })
}

function lengthOf(head: string): number | undefined {
  const line = /\r\ncontent-length: (\d+)/i.exec(head)
  return line === null ? undefined : Number(line[1])
}
