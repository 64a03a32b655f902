import type { WriteSide } from '@gamenet/schemas'

/**
 * Ends all leases on boards and on evaluation. For a process that has the write side for itself, before it takes any:
 * their owner is dead, and its leases would block its successor for minutes.
 */
export async function endLeases(writes: WriteSide): Promise<void> {
  await writes.query(
    'UPDATE board_turn AS t SET lease_holder = NULL, lease_until = NULL WHERE t.lease_holder IS NOT NULL'
  )
  await writes.query(
    `UPDATE achievement_turn AS t SET holder = NULL, lease_until = '-infinity' WHERE t.holder IS NOT NULL`
  )
}
