import { RELAY_LOCK, type WriteSide, type WriteTransactions } from '@gamenet/schemas'

/** A change of the write side that the log may lack. `id` is a bigint; `event` is as its writer stored it. */
export type OutboxRow = { readonly id: string; readonly topic: string; readonly event: unknown }

/** The outbox as a relay uses it. Each operation succeeds as a whole, or it rejects. */
export type Outbox = {
  /** Reads the rows with the lowest ids, at most `count`, without those of `except`. */
  readOldest(count: number, except: ReadonlySet<string>): Promise<OutboxRow[]>
  /** Deletes rows; ids without a row are ignored. */
  deleteRows(ids: readonly string[]): Promise<void>
  /**
   * Commits the operations of `work` when it resolves, and none of them when it rejects. `work` must use only its
   * argument.
   */
  transaction<Result>(work: (transaction: OutboxTransaction) => Promise<Result>): Promise<Result>
}

export type OutboxTransaction = Pick<Outbox, 'deleteRows'> & {
  /** Acquires the lock of relays until the transaction ends. Returns false when another relay has it. */
  lock(): Promise<boolean>
  /** Returns the ids that no other relay or erasure has deleted. */
  readLeft(ids: readonly string[]): Promise<ReadonlySet<string>>
}

/** The outbox in PostgreSQL. */
export function outboxOf(writes: WriteTransactions): Outbox {
  const deleteRows = (side: WriteSide) => async (ids: readonly string[]) =>
    void (await side.query('DELETE FROM outbox AS o WHERE o.id = ANY ($1::bigint[])', [ids]))
  return {
    readOldest: (count, except) =>
      writes.query<OutboxRow>(
        'SELECT o.id, o.topic, o.event FROM outbox AS o WHERE o.id <> ALL ($1::bigint[]) ORDER BY o.id LIMIT $2',
        [[...except], count]
      ),
    deleteRows: deleteRows(writes),
    transaction: (work) =>
      writes.transaction((transaction) =>
        work({
          async lock() {
            const sql = 'SELECT pg_try_advisory_xact_lock($1) AS is_mine'
            const [lock] = await transaction.query<{ is_mine: boolean }>(sql, [RELAY_LOCK])
            return lock?.is_mine === true
          },
          async readLeft(ids) {
            const sql = 'SELECT o.id FROM outbox AS o WHERE o.id = ANY ($1::bigint[])'
            const left = await transaction.query<{ id: string }>(sql, [ids])
            return new Set(left.map(({ id }) => id))
          },
          deleteRows: deleteRows(transaction)
        })
      )
  }
}
