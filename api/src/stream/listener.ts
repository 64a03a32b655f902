import type { Socket } from 'node:net'
import { type Channel, cursorFrame, type Format, frameOf, type Progress, type Receiver, retryFrame } from './channel.js'
import type { Hub } from './hub.js'
import type { StreamEvent } from './kinds.js'

/** A live client with more unsent bytes falls back to catch-up, so that nothing is queued for it. */
const UNSENT_BYTES_MAX = 64 * 1024
/** Time for a client to read the end of its stream. */
const END_MS_MAX = 5000
/** Events per page; doubled whenever the client has read a page, because each costs two or three queries. */
const EVENTS_MIN = 64
/** More rows would block the event loop for longer than a read takes. */
const EVENTS_MAX = 1024
/** Events that are framed at once: a millisecond. */
const PIECE_EVENTS = 128
/** Unsent characters above which all pages are the smallest: a client that reads a byte a second would hold 3 MiB. */
const CATCH_UP_CHARACTERS_MAX = 64 * 1024 * 1024
/**
 * The shortest delay after which a client reconnects to a service that stopped or failed: a restart is over by then,
 * and its first answers, which are slow, are not slowed down further.
 */
export const RETRY_MS_MIN = 3000
/** Delay after a stream whose lifetime is over; lifetimes have jitter of their own. */
const LIFETIME_RETRY_MS = 1000

/** Why a stream ended. */
export const ENDINGS = ['client', 'slow', 'lifetime', 'stopped', 'failed'] as const
export type Ending = (typeof ENDINGS)[number]

/** The state with which a listener of live counts begins. */
export type States = { readonly isReady: boolean; ready(): Promise<void>; frame(format: Format): string }

type ListenerNeeds = {
  readonly socket: Socket
  readonly hub: Hub
  readonly states: States
  readonly channel: Channel
  readonly format: Format
  readonly endsAtMs: number
  /** Delay after which the client reconnects when the connection breaks. */
  readonly retryMs: number
  /** A client that reads nothing for this long is disconnected. */
  readonly drainMs: number
  readonly onEnd: (ending: Ending) => void
  readonly onFailure: (error: unknown) => void
}

/** One connection: catches up, then is live. */
export class Listener implements Receiver {
  readonly #needs: ListenerNeeds
  readonly #abort = new AbortController()
  #hasEnded = false

  constructor(needs: ListenerNeeds) {
    this.#needs = needs
    // Keep-alives detect dead connections.
    needs.socket.setTimeout(0)
    needs.socket.once('close', () => this.#ended('client'))
    // At once: a killed service sends nothing at the end.
    needs.socket.write(retryFrame(needs.format, needs.retryMs))
  }

  get channel(): Channel {
    return this.#needs.channel
  }

  get format(): Format {
    return this.#needs.format
  }

  get endsAtMs(): number {
    return this.#needs.endsAtMs
  }

  /** Sends all events after a progress, then joins the live listeners of its channel. */
  async follow(progress: Progress): Promise<void> {
    const { hub, states, channel, format } = this.#needs
    const { signal } = this.#abort
    let limit = EVENTS_MIN
    while (!this.#hasEnded) {
      await hub.share.turn('catch-up')
      if (this.#hasEnded) return
      const page = progress.pageOf(limit)
      const recent = hub.recent(channel, progress, Math.min(page, PIECE_EVENTS))
      const behind = hub.behind(channel, progress)
      if (recent.length > 0) {
        await this.#send(framesOf(format, recent, progress))
      } else if (hub.isAtHead(channel, progress)) {
        if (!channel.hasLiveCounts || states.isReady) return this.#join()
        await states.ready()
      } else if (behind === undefined) {
        await hub.advanced(signal)
      } else {
        const { events, isReadable, done } = await hub.read(behind, channel, progress, page, signal)
        let frames = ''
        for (let n = 0; n < events.length; n += PIECE_EVENTS) {
          await hub.share.turn('catch-up')
          frames += framesOf(format, events.slice(n, n + PIECE_EVENTS), progress)
        }
        done()
        if (frames !== '') await this.#send(frames)
        if (!isReadable) await hub.advanced(signal)
      }
      limit = hub.unsentCharacters > CATCH_UP_CHARACTERS_MAX ? EVENTS_MIN : Math.min(EVENTS_MAX, limit * 2)
    }
  }

  /** Writes a frame that all listeners share; a client that is too slow falls back to catch-up. */
  write(frame: Uint8Array): void {
    const { socket, channel, hub } = this.#needs
    if (this.#hasEnded) return
    socket.write(frame)
    if (socket.writableLength <= UNSENT_BYTES_MAX) return
    // Only its client knows its position.
    if (channel.owes(this)) {
      this.end('slow')
      return
    }
    channel.live.delete(this)
    const progress = hub.progressOf(channel)
    this.#drained()
      .then(() => this.follow(progress))
      .catch((error: unknown) => this.fail(error))
  }

  /** Writes a comment if nothing is unsent: after a rollback, a catch-up can wait minutes for its next page. */
  comment(): void {
    const { socket, format } = this.#needs
    if (!this.#hasEnded && socket.writableLength === 0) socket.write(cursorFrame(format, undefined))
  }

  /** Ends the stream after a failure. The client resumes; if the failure persists, it is refused with the reason. */
  fail(error: unknown): void {
    if (!this.#hasEnded) this.#needs.onFailure(error)
    this.end('failed')
  }

  /** Ends the stream with the delay after which the client reconnects. */
  end(ending: Ending): void {
    if (this.#hasEnded) return
    const { socket, format, retryMs, drainMs } = this.#needs
    this.#ended(ending)
    socket.end(retryFrame(format, ending === 'lifetime' ? LIFETIME_RETRY_MS : retryMs))
    setTimeout(() => socket.destroy(), Math.min(END_MS_MAX, drainMs)).unref()
  }

  /** Becomes live, synchronously after the last event was sent. */
  #join(): void {
    const { socket, hub, states, channel, format } = this.#needs
    const state = channel.hasLiveCounts ? states.frame(format) : ''
    channel.live.add(this)
    // Not `write`: a slow client with a state of more than `UNSENT_BYTES_MAX` would get it repeatedly.
    socket.write(state + cursorFrame(format, hub.cursorOf(channel)))
  }

  #ended(ending: Ending): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#needs.channel.live.delete(this)
    this.#abort.abort()
    this.#needs.onEnd(ending)
  }

  /** Writes a text; resolves when the client has read it. */
  async #send(text: string): Promise<void> {
    const { hub, socket } = this.#needs
    if (this.#hasEnded || socket.write(text)) return
    hub.unsentCharacters += text.length
    await this.#drained()
    hub.unsentCharacters -= text.length
  }

  /** Resolves when the client has read everything or the stream has ended. */
  #drained(): Promise<void> {
    const { socket, drainMs } = this.#needs
    return new Promise((resolve) => {
      if (this.#hasEnded || socket.writableLength === 0) return resolve()
      // A partial read restarts the timeout of the socket.
      const stalled = (): void => this.end('slow')
      const done = (): void => {
        socket.setTimeout(0, stalled)
        socket.off('drain', done)
        this.#abort.signal.removeEventListener('abort', done)
        resolve()
      }
      socket.setTimeout(drainMs, stalled)
      socket.once('drain', done)
      this.#abort.signal.addEventListener('abort', done, { once: true })
    })
  }
}

/** Returns the frames of events, each with the cursor after it, and moves the progress past them. */
function framesOf(format: Format, events: readonly StreamEvent[], progress: Progress): string {
  let text = ''
  for (const event of events) {
    progress.move(event.kind, event.partitionId, event.next)
    text += frameOf(format, event, progress.cursor)
  }
  return text
}
