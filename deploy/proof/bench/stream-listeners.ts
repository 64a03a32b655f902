import { connect, type Socket } from 'node:net'

/*
 * Listeners of a stream in a process of their own. They look for the frames of events and nothing else, so that the service is
 * what is measured.
 */

export type ListenRequest =
  /** Answers when every listener has its first cursor, and so many events. */
  | {
      readonly type: 'open'
      readonly port: number
      readonly path: string
      readonly count: number
      readonly events: number
    }
  /** Answers when every listener has received so many further events. */
  | { readonly type: 'await'; readonly events: number }
  | { readonly type: 'close' }
/** Instants of receipt, milliseconds since 1970; the newest cursor. */
export type ListenReply = { readonly receivedMs: readonly number[]; readonly cursor: string }

/** Connections that are opened at the same time. */
const OPENING_MAX = 200

type Listener = { readonly socket: Socket; events: number; isOpen: boolean; rest: string }

const listeners: Listener[] = []
let wanted = 0
let receivedMs: number[] = []
let cursor = ''
let reached = (): void => undefined

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
    for (let opened = 0; opened < count; opened += OPENING_MAX) {
      await Promise.all(Array.from({ length: Math.min(OPENING_MAX, count - opened) }, () => open(port, path)))
    }
    if (events > 0) await all
  } else {
    for (const listener of listeners) listener.events = 0
    await received(request.events)
  }
  return { receivedMs, cursor }
}

/** Resolves when every listener has received so many events. */
function received(events: number): Promise<void> {
  wanted = events
  receivedMs = []
  return new Promise((resolve) => {
    reached = resolve
  })
}

function open(port: number, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' })
    const listener: Listener = { socket, events: 0, isOpen: false, rest: '' }
    socket.on('error', reject)
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
    socket.on('data', (chunk) => {
      const hasCursor = read(listener, chunk.toString('latin1'))
      if (listener.isOpen || !hasCursor) return
      listener.isOpen = true
      listeners.push(listener)
      resolve()
    })
  })
}

/** Counts the events in a text; returns whether it had a cursor. The head of the answer is a part of the first frame. */
function read(listener: Listener, text: string): boolean {
  const frames = (listener.rest + text).split('\n\n')
  listener.rest = frames.pop() ?? ''
  for (const frame of frames) {
    cursor = /^id: (.*)$/m.exec(frame)?.[1] ?? cursor
    if (!/^event: /m.test(frame)) continue
    listener.events += 1
    if (listener.events !== wanted) continue
    receivedMs.push(Date.now())
    if (receivedMs.length === listeners.length) reached()
  }
  return frames.length > 0
}
