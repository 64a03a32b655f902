import { type LogMessage, type PackedMessages, unpackMessages } from '@gamenet/schemas'

/** The part of a log that publishing needs. */
export type Log = {
  /**
   * Resolves when the log has stored all messages durably, in order per key. After an error, none or some of them may
   * be stored; appending them again is safe, because readers identify an event by its id and key.
   */
  append(topic: string, messages: readonly LogMessage[]): Promise<void>
  /** The same for packed messages. Without it they are unpacked. */
  readonly appendPacked?: (topic: string, packed: PackedMessages) => Promise<void>
}

/** Appends packed messages to any log. */
export async function appendPacked(log: Log, topic: string, packed: PackedMessages): Promise<void> {
  await (log.appendPacked === undefined ? log.append(topic, unpackMessages(packed)) : log.appendPacked(topic, packed))
}
