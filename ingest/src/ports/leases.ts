import type { WriteSide } from '@gamenet/schemas'

/**
 * Ends all leases on boards and on evaluation. For a process with exclusive use of the write side, before it acquires
 * any: the leases of a dead owner would block it for minutes.
 */
export async function endLeases(writes: WriteSide): Promise<void> {
  await writes.query(
    'UPDATE board_lease AS t SET lease_holder = NULL, lease_until = NULL WHERE t.lease_holder IS NOT NULL'
  )
  await writes.query(
    `UPDATE achievement_lease AS t SET holder = NULL, lease_until = '-infinity' WHERE t.holder IS NOT NULL`
  )
}
