import { type ChdbResult, type RawInsertParams, Session } from 'chdb'
import { ClickHouseError } from './clickhouse.js'

const CLEANINGS_MAX = 3

const openSession = (path: string, connectionArgs: readonly string[]): Session => new Session(path, { connectionArgs })

/**
 * A connection of chDB that does not mix up answers. What a statement had written when it failed (a timeout, a kill, an
 * exception in a late row) stays in the connection, and chDB 3.4 puts it in front of the next statement's answer; until
 * then the failed query also stays in system.processes, with its memory. So a failure is always followed by a statement
 * of ours, whose answer is thrown away until nothing stands in front of it.
 */
export class CleanSession {
  readonly #session: Session
  #cleaning: Promise<void> | undefined

  constructor(path: string, connectionArgs: readonly string[], open = openSession) {
    this.#session = open(path, connectionArgs)
  }

  /** One statement at a time; rejects with the package's errors. */
  async query(sql: string, format: string): Promise<ChdbResult> {
    return await this.#guarded((session) => session.queryAsync(sql, { format }))
  }

  /**
   * With more threads than one chDB hands the rows to a thread that it begins for this insert: on a machine with much else to do such
   * an insert of a few rows never returned, three times in all. With one they are stored by the thread that asks.
   */
  async insert(params: RawInsertParams): Promise<void> {
    const settings = { ...params.settings, max_threads: 1 }
    await this.#guarded((session) => session.insert({ ...params, settings }))
  }

  /** The chunks of an answer; a stream that is left early is cancelled. */
  async *stream(sql: string, format: string): AsyncGenerator<Uint8Array> {
    await this.#cleaned()
    let isComplete = false
    try {
      for await (const chunk of this.#session.queryStream(sql, { format })) yield chunk.raw()
      isComplete = true
    } finally {
      if (!isComplete) this.#startCleaning()
    }
  }

  /** Resolves when no cleaning is under way; between two statements nothing else runs. */
  async idle(): Promise<void> {
    await this.#cleaning?.catch(() => undefined)
  }

  /** Only when nothing runs on it: a connection closed under a statement takes the whole process down. */
  close(): void {
    this.#session.close()
  }

  async #guarded<Answer>(work: (session: Session) => Promise<Answer>): Promise<Answer> {
    await this.#cleaned()
    try {
      return await work(this.#session)
    } catch (error) {
      this.#startCleaning()
      throw error
    }
  }

  /** Rejects when it could not be cleaned, of memory that was short for a moment for example; the next caller tries that again. */
  async #cleaned(): Promise<void> {
    const cleaning = this.#cleaning
    try {
      await cleaning
    } catch (error) {
      if (this.#cleaning === cleaning) this.#startCleaning()
      throw error
    }
  }

  /** The caller of the failed statement does not wait for it, the next one does. */
  #startCleaning(): void {
    this.#cleaning = this.#clean()
    this.#cleaning.catch(() => undefined)
  }

  async #clean(): Promise<void> {
    for (let attempt = 0; attempt < CLEANINGS_MAX; attempt += 1) {
      const answer = await this.#session.queryAsync(`SELECT 'clean'`, { format: 'TabSeparated' })
      if (answer.text() === 'clean\n') return
    }
    throw new ClickHouseError('A connection of chDB keeps the remains of a failed statement; restart the service.')
  }
}
