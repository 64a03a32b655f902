import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A way to a port of this machine. While it is silent it accepts connections, and what is sent waits, as in front of a stopped process. */
export type Wire = { readonly port: number; isSilent: boolean }

/** Starts a wire, which ends with the test. */
export async function startWire(t: { teardown(end: () => void): void }, target: number): Promise<Wire> {
  const sockets = new Set<Socket>()
  let isSilent = false
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near]
    ] as const) {
      sockets.add(from)
      from.on('data', (bytes) => to.write(bytes))
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      if (isSilent) from.pause()
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    get isSilent() {
      return isSilent
    },
    set isSilent(next) {
      isSilent = next
      for (const socket of sockets)
        if (next) socket.pause()
        else socket.resume()
    }
  }
}
