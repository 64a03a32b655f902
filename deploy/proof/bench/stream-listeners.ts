import { connect, Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/*
 * Listeners of a stream, in a separate process. They only look for frames of events, so that the service is the bottleneck.
 */

export type ListenRequest =
  /** Answered when every listener is live and has received `events` events. */
  | {
      readonly type: 'open'
      readonly port: number
      readonly path: string
      readonly count: number
      readonly events: number
    }
  /**
   * Reconnects all listeners when their connections break, as `EventSource` does, each 0 to `behindMax` events behind the last
   * one; answered when all are live again.
   */
  | { readonly type: 'reconnect'; readonly port: number; readonly path: string; readonly behindMax: number }
  /** Answered when every listener has received `events` further events. */
  | { readonly type: 'await'; readonly events: number }
  | { readonly type: 'close' }
/** Instants of receipt, milliseconds since 1970. */
export type ListenReply = { readonly receivedMs: readonly number[] }

/** Limit of concurrently opened connections. */
const OPENING_MAX = 200
/** Enough for reconnections; a catch-up has 200,000 events, each with a cursor. */
const CURSORS_MAX = 1000

/** Delay of a reconnection until the service has sent one: that of Chromium. */
const RETRY_MS = 3000

type Listener = { socket: Socket; events: number; rest: string; retryMs: number }

const listeners: Listener[] = []
let wanted = 0
let receivedMs: number[] = []
/** Received cursors, oldest first. */
const cursors = new Set<string>()
let onAllReceived = (): void => undefined

process.on('disconnect', () => process.exit(0))
process.on('message', (request: ListenRequest) => {
  void answer(request).then((reply) => process.send?.(reply))
})

async function answer(request: ListenRequest): Promise<ListenReply> {
  if (request.type === 'close') {
    for (const { socket } of listeners.splice(0)) socket.destroy()
  } else if (request.type === 'open') {
    const { port, path, count, events } = request
    const all = received(events)
    await openAll(port, path, count)
    if (events > 0) await all
  } else if (request.type === 'reconnect') {
    const { port, path, behindMax } = request
    const known = [...cursors].slice(-1 - behindMax)
    await Promise.all(
      listeners.map((listener, n) => reconnect(listener, port, `${path}&after=${known[n % known.length]}`))
    )
  } else {
    for (const listener of listeners) listener.events = 0
    await received(request.events)
  }
  return { receivedMs }
}

async function openAll(port: number, path: string, count: number): Promise<void> {
  const open = async (): Promise<void> => {
    const listener: Listener = { socket: new Socket(), events: 0, rest: '', retryMs: RETRY_MS }
    listeners.push(listener)
    if (!(await connected(listener, port, path))) throw new Error(`${path} ended before it was live: ${listener.rest}`)
  }
  for (let left = count; left > 0; left -= OPENING_MAX) {
    await Promise.all(Array.from({ length: Math.min(left, OPENING_MAX) }, open))
  }
}

async function reconnect(listener: Listener, port: number, path: string): Promise<void> {
  await new Promise((resolve) => listener.socket.once('close', resolve))
  do await pause(listener.retryMs)
  while (!(await connected(listener, port, path)))
}

/** Resolves when every listener has received `events` events. */
function received(events: number): Promise<void> {
  wanted = events
  receivedMs = []
  return new Promise((resolve) => {
    onAllReceived = resolve
  })
}

/** Connects a listener; resolves with whether it became live before the connection ended. */
function connected(listener: Listener, port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    Object.assign(listener, { socket, rest: '' })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(false))
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
    socket.on('data', (chunk) => {
      if (read(listener, chunk.toString('latin1'))) resolve(true)
    })
  })
}

/**
 * Counts the events in a text; returns whether it has a cursor without an event, which marks a listener as live. The first
 * frame includes the head of the answer.
 */
function read(listener: Listener, text: string): boolean {
  const frames = (listener.rest + text).split('\n\n')
  listener.rest = frames.pop() ?? ''
  let isLive = false
  for (const frame of frames) {
    const cursor = /^id: (.*)$/m.exec(frame)?.[1]
    if (cursor !== undefined && cursors.size < CURSORS_MAX) cursors.add(cursor)
    if (!/^event: /m.test(frame)) {
      const retryMs = /^retry: (\d+)$/m.exec(frame)?.[1]
      if (retryMs !== undefined) listener.retryMs = Number(retryMs)
      isLive ||= cursor !== undefined
      continue
    }
    listener.events += 1
    if (listener.events !== wanted) continue
    receivedMs.push(Date.now())
    if (receivedMs.length === listeners.length) onAllReceived()
  }
  return isLive
}
