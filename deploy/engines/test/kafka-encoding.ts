import { once } from 'node:events'
import { createRequire } from 'node:module'
import { connect } from 'node:net'

/*
 * Batches as producers of other programs write them, encoded by kafkajs's own encoder; its producer sends no header without a value.
 */

const load = createRequire(import.meta.url)

export type EncodedRecord = {
  readonly offsetDelta: number
  readonly timestampDelta: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[]
}

export type EncodedBatch = {
  readonly records: readonly EncodedRecord[]
  readonly firstOffset?: number
  readonly producerId?: number
  readonly transactional?: boolean
  readonly compression?: number
  readonly isControl?: boolean
}

export async function encodeBatch(options: EncodedBatch): Promise<Buffer> {
  const { records, firstOffset = 0, producerId = -1, isControl = false, ...batch } = options
  const Long = load('kafkajs/src/utils/long')
  const crc32C = load('kafkajs/src/protocol/recordBatch/crc32C')
  const { RecordBatch } = load('kafkajs/src/protocol/recordBatch/v0')
  const encoded = await RecordBatch({
    ...batch,
    records: records.map(encodeRecord),
    firstOffset: Long.fromValue(firstOffset),
    producerId: Long.fromValue(producerId),
    lastOffsetDelta: records.at(-1)?.offsetDelta ?? 0
  })
  const bytes: Buffer = encoded.buffer
  if (isControl) {
    bytes.writeInt16BE(bytes.readInt16BE(21) | 0x20, 21)
    bytes.writeUInt32BE(crc32C(bytes.subarray(21)), 17)
  }
  return bytes
}

/** Decodes the batches of a partition with kafkajs's own decoder, which ours replaces. */
export async function decodeByKafkajs(batches: Buffer): Promise<KafkajsRecord[]> {
  const slot = load.resolve('kafkajs/src/protocol/requests/fetch/v4/decodeMessages')
  const ours = load.cache[slot]
  delete load.cache[slot]
  const decode = load(slot)
  if (ours !== undefined) load.cache[slot] = ours
  const Decoder = load('kafkajs/src/protocol/decoder')
  const Encoder = load('kafkajs/src/protocol/encoder')
  return await decode(new Decoder(new Encoder().writeBytes(batches).buffer))
}

export type KafkajsRecord = {
  readonly offset: string
  readonly timestamp: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: Readonly<Record<string, Buffer | null | readonly (Buffer | null)[]>>
  readonly isControlRecord: boolean
  readonly batchContext: { readonly producerId: string; readonly inTransaction: boolean }
}

function encodeRecord({ offsetDelta, timestampDelta, key, value, headers }: EncodedRecord) {
  const Encoder = load('kafkajs/src/protocol/encoder')
  const body = new Encoder()
    .writeInt8(0)
    .writeVarLong(timestampDelta)
    .writeVarInt(offsetDelta)
    .writeVarIntBytes(key)
    .writeVarIntBytes(value)
    .writeVarInt(headers.length)
  for (const [name, bytes] of headers) body.writeVarIntString(name).writeVarIntBytes(bytes)
  return new Encoder().writeVarInt(body.size()).writeEncoder(body)
}

/** Appends a batch to partition 0 in a separate request. Resolves when the broker has answered without an error. */
export async function produce(address: string, topic: string, batch: Buffer): Promise<void> {
  const Encoder = load('kafkajs/src/protocol/encoder')
  const [PRODUCE, VERSION, CORRELATION, ACKS, TIMEOUT_MS, PARTITION] = [0, 3, 1, -1, 5000, 0] as const
  const request = new Encoder().writeInt16(PRODUCE).writeInt16(VERSION).writeInt32(CORRELATION).writeString('test')
  request.writeString(null).writeInt16(ACKS).writeInt32(TIMEOUT_MS)
  request.writeInt32(1).writeString(topic).writeInt32(1).writeInt32(PARTITION).writeBytes(batch)
  const [host, port] = address.split(':')
  const socket = connect(Number(port), host)
  socket.write(new Encoder().writeBytes(request.buffer).buffer)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  // After length, correlation, topics, name, partitions and partition.
  const error = answer.readInt16BE(4 + 4 + 4 + 2 + topic.length + 4 + 4)
  if (error !== 0) throw new Error(`Kafka refused the batch with error ${error}`)
}
