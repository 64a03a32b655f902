/** FNV-1a over UTF-16 units. Part of the format of a log directory, because a key must stay in its partition. */
export function partitionOf(key: string, partitions: number): number {
  let hash = 0x811c9dc5
  for (let i = 0; partitions > 1 && i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return (hash >>> 0) % partitions
}

const TOPIC = /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,199}$/

/** Throws if not every engine supports the topic's name. */
export function assertTopicName(topic: string): void {
  if (TOPIC.test(topic)) return
  throw new Error(`the topic ${JSON.stringify(topic)} has an invalid name: expected 1 to 200 of a-z A-Z 0-9 . _ -`)
}

const OFFSETS_END = 2 ** 48

/** An offset of Kafka, a decimal text, as a number. Throws beyond 2^48, which positions cannot hold. */
export function positionNumber(offset: string): number {
  const value = Number(offset)
  if (Number.isSafeInteger(value) && value >= 0 && value < OFFSETS_END) return value
  throw new Error(`Kafka gave the offset ${offset}, expected 0 to 2^48 - 1`)
}
