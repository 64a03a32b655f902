import { createRequire } from 'node:module'
import type { Socket } from 'node:net'
import { type KafkaRecord, readBatches } from './kafka-records.js'

/*
 * Replaces parts of private modules of kafkajs, whose version is therefore pinned exactly. A missing module throws at
 * the first use of Kafka.
 */

const load = createRequire(import.meta.url)

let isPatched = false

/** Patches kafkajs once per thread. Call it before the first fetch, with which kafkajs loads its decoders. */
export function patchKafkajs(): void {
  if (isPatched) return
  isPatched = true
  quietIdleQueues()
  leaveClosedSockets()
  replaceDecoder()
}

type RequestQueue = { readonly pending: readonly unknown[]; scheduleCheckPendingRequests(): void }

/**
 * Stops the timers of idle connections: a connection of kafkajs 2.2.4 without pending requests sets a timer of 1 ms
 * repeatedly, about 58 ms of processor time a second each. The check does nothing without pending requests, and the
 * next request that has to wait schedules it again.
 */
function quietIdleQueues(): void {
  const { prototype } = load('kafkajs/src/network/requestQueue') as { prototype: RequestQueue }
  const schedule = prototype.scheduleCheckPendingRequests
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue): void {
    if (this.pending.length > 0) schedule.call(this)
  }
}

type Connection = { readonly socket: Socket | null; disconnect(): Promise<true> }

/**
 * Keeps closed sockets from being unreferenced: each `unref` of one adds a listener, and kafkajs disconnects every
 * connection of an unavailable broker at each attempt. Node warns of the eleventh listener.
 */
function leaveClosedSockets(): void {
  const { prototype } = load('kafkajs/src/network/connection') as { prototype: Connection }
  const disconnect = prototype.disconnect
  prototype.disconnect = async function (this: Connection): Promise<true> {
    const { socket } = this
    if (socket?.destroyed === true) socket.unref = () => socket
    return await disconnect.call(this)
  }
}

/** The decoder of an answer to a fetch; `readBytes` reads a length and as many bytes. */
type AnswerDecoder = { readBytes(): Buffer | null }

/** Decodes the batches of a fetch of version 4 or newer by {@link readBatches}. */
function replaceDecoder(): void {
  const slot = 'kafkajs/src/protocol/requests/fetch/v4/decodeMessages'
  load(slot)
  const module = load.cache[load.resolve(slot)] as { exports: unknown }
  module.exports = async (answer: AnswerDecoder): Promise<KafkaRecord[]> => {
    const bytes = answer.readBytes()
    return bytes === null ? [] : await readBatches(bytes)
  }
}
