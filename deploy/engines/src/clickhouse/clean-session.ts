import { type ChdbResult, type RawInsertParams, Session } from 'chdb'
import { ClickHouseError } from './clickhouse.js'
import { memoryFile } from './memory-file.js'
import { stringLiteral } from './parameters.js'
import { assignments, type Settings } from './statement.js'

/** The names are plain identifiers. */
type NativeInsert = {
  readonly table: string
  readonly columns: readonly string[]
  readonly settings: Settings
  readonly bytes: Uint8Array
  readonly folder: string
}

const CLEANINGS_MAX = 3

const openSession = (path: string, connectionArgs: readonly string[]): Session => new Session(path, { connectionArgs })

/**
 * A connection of chDB whose answers are not mixed up. The partial output of a failed statement (a timeout, a kill, an
 * exception in a late row) stays in the connection, and chDB 3.4 puts it in front of the next answer; until then the
 * failed query also stays in system.processes with its memory. So after each failure the session runs a statement and
 * discards its answer, until the answer is clean.
 */
export class CleanSession {
  readonly #session: Session
  #cleaning: Promise<void> | undefined

  constructor(path: string, connectionArgs: readonly string[], open = openSession) {
    this.#session = open(path, connectionArgs)
  }

  /** Runs one statement at a time; rejects with the package's errors. */
  async query(sql: string, format: string): Promise<ChdbResult> {
    return await this.#guarded((session) => session.queryAsync(sql, { format }))
  }

  /**
   * Inserts on one thread. With several threads chDB passes the rows to a thread that it starts for this insert; on a
   * busy machine such an insert of a few rows never returned, three times in all. With one thread the caller stores
   * them.
   */
  async insert(params: RawInsertParams): Promise<void> {
    const settings = { ...params.settings, max_threads: 1 }
    await this.#guarded((session) => session.insert({ ...params, settings }))
  }

  /**
   * Inserts rows in the format Native through a file in memory, because the package accepts only text. `folder` is used if
   * the system has no files in memory. On one thread, as above. Planning a SELECT from the same file takes 0.8 ms more.
   */
  async insertNative({ table, columns, settings, bytes, folder }: NativeInsert): Promise<void> {
    const file = memoryFile(bytes, folder)
    const from = `INSERT INTO ${table} (${columns.join(', ')}) FROM INFILE ${stringLiteral(file.path)}`
    try {
      await this.query(`${from} SETTINGS ${assignments({ ...settings, max_threads: 1 })} FORMAT Native`, 'Null')
    } finally {
      file.close()
    }
  }

  /** Yields the chunks of an answer. If its consumer stops early, the stream is cancelled. */
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

  /** Resolves when no cleaning is under way; only cleaning runs between two statements. */
  async idle(): Promise<void> {
    await this.#cleaning?.catch(() => undefined)
  }

  /** Call it only when nothing runs: closing a connection during a statement crashes the process. */
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

  /** Rejects when cleaning failed, for example because memory was short; the next caller retries. */
  async #cleaned(): Promise<void> {
    const cleaning = this.#cleaning
    try {
      await cleaning
    } catch (error) {
      if (this.#cleaning === cleaning) this.#startCleaning()
      throw error
    }
  }

  /** The next caller waits for it; the caller of the failed statement does not. */
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
