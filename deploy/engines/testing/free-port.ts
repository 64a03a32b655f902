import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'

const FIRST_PORT = 15_000
/** Linux's default start of the port range for outgoing connections. */
const EPHEMERAL_FROM = 32_768
const TRIES_MAX = 100
/** Those of this process: a server may not listen yet. */
const given = new Set<number>()

/**
 * Returns a free loopback port below the range for outgoing connections, so that no connection takes it before a slow
 * server listens, or while a server restarts.
 */
export async function freePort(): Promise<number> {
  const range = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').catch(() => '')
  const end = Math.max(FIRST_PORT + 1000, Number.parseInt(range, 10) || EPHEMERAL_FROM)
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const port = FIRST_PORT + Math.floor(Math.random() * (end - FIRST_PORT))
    if (given.has(port)) continue
    given.add(port)
    if (await isFree(port)) return port
  }
  throw new Error(`No free loopback port was found between ${FIRST_PORT} and ${end}.`)
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  try {
    probe.listen(port, '127.0.0.1')
    await once(probe, 'listening')
    return true
  } catch {
    return false
  } finally {
    if (probe.listening) await new Promise((resolve) => probe.close(resolve))
  }
}
