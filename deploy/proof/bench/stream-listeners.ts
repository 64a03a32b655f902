import { connect, type Socket } from 'node:net'

/*
 * Listeners of a stream, in a separate process. They only look for frames of events, so that the service is the bottleneck.
 */

export type ListenRequest =
  /** Answered when every listener is live. */
  | { readonly type: 'open'; readonly port: number; readonly path: string; readonly count: number }
  /** Answered when every listener has received `events` further events. */
  | { readonly type: 'await'; readonly events: number }
  | { readonly type: 'close' }
/** Instants of receipt, milliseconds since 1970. */
export type ListenReply = { readonly receivedMs: readonly number[] }

/** Limit of concurrently opened connections. */
const OPENING_MAX = 200

type Listener = { readonly socket: Socket; events: number; rest: string }

const listeners: Listener[] = []
let wanted = 0
let receivedMs: number[] = []
let onAllReceived = (): void => undefined

process.on('disconnect', () => process.exit(0))
process.on('message', (request: ListenRequest) => {
  void answer(request).then((reply) => process.send?.(reply))
})

async function answer(request: ListenRequest): Promise<ListenReply> {
  if (request.type === 'close') {
    for (const { socket } of listeners.splice(0)) socket.destroy()
  } else if (request.type === 'open') {
    await openAll(request.port, request.path, request.count)
  } else {
    for (const listener of listeners) listener.events = 0
    await received(request.events)
  }
  return { receivedMs }
}

async function openAll(port: number, path: string, count: number): Promise<void> {
  for (let left = count; left > 0; left -= OPENING_MAX) {
    await Promise.all(Array.from({ length: Math.min(left, OPENING_MAX) }, () => open(port, path)))
  }
}

/** Resolves when every listener has received `events` events. */
function received(events: number): Promise<void> {
  wanted = events
  receivedMs = []
  return new Promise((resolve) => {
    onAllReceived = resolve
  })
}

/** Connects a listener; resolves when it is live. */
function open(port: number, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' })
    const listener: Listener = { socket, events: 0, rest: '' }
    listeners.push(listener)
    socket.on('error', () => undefined)
    socket.on('close', () => reject(new Error(`${path} ended before it was live: ${listener.rest}`)))
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
    socket.on('data', (chunk) => {
      if (read(listener, chunk.toString('latin1'))) resolve()
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
    if (!/^event: /m.test(frame)) {
      isLive ||= /^id: /m.test(frame)
      continue
    }
    listener.events += 1
    if (listener.events !== wanted) continue
    receivedMs.push(Date.now())
    if (receivedMs.length === listeners.length) onAllReceived()
  }
  return isLive
}
