/** PostgreSQL's notifications: see `listen` of the engine. */
export type WriteChanges = {
  listen(channel: string, onPayload: (payload: string) => void, onListening: () => void): () => Promise<void>
}
