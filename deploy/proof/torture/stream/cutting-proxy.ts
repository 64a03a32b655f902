import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { chance } from '../world.js'

const BYTES_MAX = 20_000
const MS_MAX = 1000

/** A proxy that cuts each connection after a random number of bytes or milliseconds, also inside an event. */
export async function startCuttingProxy(
  target: number,
  seed: number
): Promise<{ readonly port: number; close(): void }> {
  let connections = 0
  const server = createServer((client) => {
    connections += 1
    const upstream = connect(target, '127.0.0.1')
    const cut = (): void => {
      client.destroy()
      upstream.destroy()
      clearTimeout(timeout)
    }
    const timeout = setTimeout(cut, chance(seed, connections, 1) * MS_MAX)
    let left = Math.ceil(chance(seed, connections, 2) * BYTES_MAX)
    upstream.on('data', (chunk) => {
      client.write(chunk.subarray(0, left))
      left -= chunk.length
      // `end` delivers the bytes received before the cut.
      if (left <= 0) client.end(cut)
    })
    client.pipe(upstream)
    for (const socket of [client, upstream]) {
      socket.on('error', cut)
      socket.on('close', cut)
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { port: (server.address() as AddressInfo).port, close: () => server.close() }
}
