import { pause, Username } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError, UsageError } from '../../config.js'
import { Flag, Instant, NoInput, type OperationNeeds, operation } from '../operation.js'
import { requireCaughtUp } from '../status/caught-up.js'
import type { EraseNeeds } from './erase-user.js'
import { ErasureProgress, ErasureReport } from './erasure-report.js'

const CAUGHT_UP_MS_MAX = 600_000
const RETRY_MS = 60_000
/** Far above the longest username. */
const USERNAME_BYTES_MAX = 4096

export const Erasure = z.object({
  /** Hash of the username with a salt of this installation; hexadecimal. */
  nameHash: z.string(),
  erasedAt: Instant,
  /** Null while it is pending. */
  doneAt: Instant.nullable(),
  /** When the user signed in again, as a new person. */
  returnedAt: Instant.nullable()
})
export type Erasure = z.infer<typeof Erasure>

/**
 * Permanently erases a user. A username about which nothing is stored is entered in the ledger only with `anyway`. A
 * running service completes an interrupted erasure, a stopped one when it starts.
 */
export const erase = operation({
  name: 'erasure',
  route: 'POST /erasures',
  input: z.strictObject({ username: z.string(), anyway: Flag.default(false) }),
  inputRule: 'The query takes anyway as true or false; the body is the username',
  // Addresses appear in logs of proxies and shells; bodies do not.
  body: { as: 'text', field: 'username', bytesMax: USERNAME_BYTES_MAX },
  progress: ErasureProgress,
  result: ErasureReport,
  needsLog: true,
  run: async (needs, { username, anyway }, { onProgress }) => {
    const name = Username.safeParse(username)
    if (!name.success) throw new UsageError(`This is not a username: ${name.error.issues[0]?.message}.`)
    const [{ eraseUser }, { writeLedgerCopy }] = await Promise.all([
      import('./erase-user.js'),
      import('../../stores/ledger-file.js')
    ])
    const damaged = await needs.damage.tables.inUse()
    const erased = async () => {
      const report = await eraseUser(await erasureNeeds(needs, onProgress), name.data, anyway)
      if (report.isEntered) await writeLedgerCopy(needs.engines)
      return report
    }
    const report = await erased().catch((error: unknown) => {
      needs.finishErasures()
      throw error
    })
    if (report.isEntered || damaged.length === 0) return report
    throw new FailureError(
      `Rows of ${damaged.map(({ table }) => table).join(', ')} may be missing until it is repaired, and no other row ` +
        `names the user. Erase again when gamenet status reports no damaged table, or use --anyway.`
    )
  }
})

/** The ledger of erasures. */
export const listErasures = operation({
  name: 'list of erasures',
  route: 'GET /erasures',
  input: NoInput,
  result: z.array(Erasure),
  run: async ({ engines }) => {
    const { readLedger } = await import('../../stores/ledger.js')
    return (await readLedger(await engines.writes())).map(({ nameHash, erasedAt, doneAt, returnedAt }) => ({
      nameHash,
      erasedAt: erasedAt.toISOString(),
      doneAt: doneAt?.toISOString() ?? null,
      returnedAt: returnedAt?.toISOString() ?? null
    }))
  }
})

/**
 * Completes the pending erasures, once the disk has free space; after a failure it tries again, until the service
 * stops.
 * @returns how many there were
 */
export async function finishErasures(needs: OperationNeeds, onFailure: (error: unknown) => void): Promise<number> {
  const [{ finishErasures }, { writeLedgerCopy }] = await Promise.all([
    import('./erase-user.js'),
    import('../../stores/ledger-file.js')
  ])
  for (;;) {
    needs.stopping.throwIfAborted()
    try {
      await needs.engines.disk.whenSpace(needs.stopping)
      const finished = await finishErasures(await erasureNeeds(needs, () => undefined))
      await writeLedgerCopy(needs.engines)
      return finished
    } catch (error) {
      if (!needs.stopping.aborted) onFailure(error)
    }
    await pause(RETRY_MS, needs.stopping)
  }
}

async function erasureNeeds(
  needs: OperationNeeds,
  onProgress: (progress: ErasureProgress) => void
): Promise<EraseNeeds> {
  const { engines, isRunning, onChange, stopping, steps } = needs
  const isUnread = !isRunning && engines.isEmbedded
  const whenCaughtUp = async (topics: readonly string[]) => {
    // The deletion of rows never ends while merges are stopped.
    await engines.disk.requireSpace(0, 'Deleting the rows of a user')
    // Without the keys, the events that are not loaded yet cannot be decrypted.
    if (isUnread) return
    await requireCaughtUp(needs, 'The tables have not caught up with the log', CAUGHT_UP_MS_MAX, topics)
  }
  const tables = engines.clickhouse.control
  const writes = await engines.writes()
  return {
    writes,
    tables,
    whenCaughtUp,
    stepsEnded: () => steps.stepsEnded(),
    ownsTables: engines.ownsTables,
    onChange,
    onProgress,
    signal: stopping,
    ...(isUnread && { keyCacheMs: 0 })
  }
}
