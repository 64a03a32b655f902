import type { LogMessage } from '@gamenet/schemas'

/** The only thing that ingest asks of a log. */
export type Log = {
  /**
   * Resolves when the log has all messages for good, in their order per key. On an error none or some of them
   * may have been written; appending them again is safe, since readers know an event by its id and key.
   */
  append(topic: string, messages: readonly LogMessage[]): Promise<void>
}
