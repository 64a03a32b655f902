import type { WriteSide } from '@gamenet/schemas'

/**
 * Ends all leases. For a process with exclusive use of the write side, before it acquires any: the leases of a dead
 * owner would block it for minutes.
 */
export async function endLeases(writes: WriteSide): Promise<void> {
  await writes.query(
    'UPDATE board_lease AS t SET lease_holder = NULL, lease_until = NULL WHERE t.lease_holder IS NOT NULL'
  )
  await writes.query('DELETE FROM work_lease')
}

/**
 * Acquires or renews the lease of some work. Returns false when another process holds it. The lease is not a lock: work
 * that two processes do at once must be harmless.
 * @param seconds how long other processes leave the work alone
 */
export async function acquireLease(writes: WriteSide, work: string, holder: string, seconds: number): Promise<boolean> {
  const rows = await writes.query(
    `INSERT INTO work_lease AS t (work, holder, lease_until) VALUES ($1, $2, now() + make_interval(secs => $3))
     ON CONFLICT (work) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until
     WHERE t.holder = excluded.holder OR t.lease_until < now() RETURNING t.work`,
    [work, holder, seconds]
  )
  return rows.length > 0
}

/** Releases all leases of a holder. */
export async function releaseLeases(writes: WriteSide, holder: string): Promise<void> {
  await writes.query('DELETE FROM work_lease AS t WHERE t.holder = $1', [holder])
}
