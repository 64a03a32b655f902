import type { Postgres } from '@gamenet/engines'
import type { PassLock } from '@gamenet/projector'
import { StepsHeld } from '@gamenet/projector/rebuild'
import { errorCode, FILLS_LOCK, type PASSES_LOCK, Refusal } from '@gamenet/schemas'
import { FailureError } from '../config.js'

/** Longest wait for exclusive use. A pass takes seconds, at most some tens of seconds. */
const EXCLUSIVE_WAIT_MS = 300_000
/** A waiter that waits longer for the lock goes to the end of the queue, so that those after it run first. */
const LOCK_WAIT_MS = 8000
const LOCK_NOT_AVAILABLE = '55P03'
const HELD = 'PostgreSQL is unavailable; this step needs its lock and waits.'
const BUSY = 'A rebuild is starting, or event tables are being swapped; this step waits.'
const HELD_UP = 'Tables are being compared, or rows erased; this step waits and is repeated.'

/**
 * Locks that are required. Passes run without PostgreSQL; rebuild steps wait until it is back, because no reader
 * depends on them.
 */
const WAITS: ReadonlySet<number> = new Set([FILLS_LOCK])

type Lock = typeof PASSES_LOCK | typeof FILLS_LOCK

/** Commits the transaction of `work` when it resolves. Its locks are released then, and by the death of the process. */
export type LockTransactions = <Result>(work: (transaction: LockTransaction) => Promise<Result>) => Promise<Result>

export type LockTransaction = {
  /** Acquires a lock, shared or exclusive. Rejects with {@link LOCK_NOT_AVAILABLE} after {@link LOCK_WAIT_MS}. */
  lock(lock: Lock, how: 'shared' | 'exclusive'): Promise<void>
  /** Rejects when the connection has ended: another process may hold the lock. */
  check(): Promise<void>
}

/** Advisory locks of PostgreSQL. */
export function advisoryLocks(writes: () => Promise<Postgres>): LockTransactions {
  return async (work) => {
    const postgres = await writes()
    return await postgres.transaction(async (transaction) => {
      // May take longer than the usual limit of a transaction.
      await transaction.script(
        `SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`
      )
      return await work({
        lock: async (lock, how) =>
          void (await transaction.query(`SELECT pg_advisory_xact_lock${how === 'shared' ? '_shared' : ''}($1)`, [
            lock
          ])),
        check: async () => void (await transaction.query('SELECT 1'))
      })
    })
  }
}

/** Excludes the passes of several projectors from work that needs unchanging tables. */
export function sharedPasses(needs: {
  readonly locks: LockTransactions
  readonly lock: Lock
  /** Called after each wait for the lock, even if it failed. */
  readonly onWaited?: (seconds: number) => void
}): PassLock {
  const { lock } = needs
  /** Safe: without PostgreSQL no process gets the exclusive lock, and the `check` of one that had it rejects. */
  const unlocked = async <Result>(pass: (check: () => Promise<void>) => Promise<Result>): Promise<Result> => {
    if (WAITS.has(lock)) throw new StepsHeld(HELD)
    return await pass(async () => undefined)
  }
  return {
    shared: async (pass) => {
      const locked = await withLock(needs, 'shared', pass).catch((error: unknown) => {
        if (!isLockTimeout(error)) throw error
        throw WAITS.has(lock) ? new StepsHeld(BUSY) : new Error(HELD_UP, { cause: error })
      })
      return locked === 'away' ? await unlocked(pass) : locked.result
    },
    exclusive: async (work) => {
      const begun = performance.now()
      while (performance.now() - begun < EXCLUSIVE_WAIT_MS) {
        try {
          const locked = await withLock(needs, 'exclusive', work)
          if (locked !== 'away') return locked.result
          throw new FailureError(
            'PostgreSQL is unavailable; without its lock other projectors could write into the tables meanwhile. Repeat the command when PostgreSQL is back.'
          )
        } catch (error) {
          if (!isLockTimeout(error)) throw error
        }
      }
      throw new FailureError(
        `Another projector has not ended its pass, or its step of a rebuild, within ${EXCLUSIVE_WAIT_MS / 1000} s; check \`gamenet status\` there, then repeat the command.`
      )
    }
  }
}

/** Runs work under the lock; reports if PostgreSQL was unavailable. */
async function withLock<Result>(
  { locks, lock, onWaited }: Parameters<typeof sharedPasses>[0],
  how: 'shared' | 'exclusive',
  work: (check: () => Promise<void>) => Promise<Result>
): Promise<{ readonly result: Result } | 'away'> {
  let hasBegun = false
  let done: { readonly result: Result } | undefined
  try {
    await locks(async (transaction) => {
      const begun = performance.now()
      await transaction.lock(lock, how).finally(() => onWaited?.((performance.now() - begun) / 1000))
      hasBegun = true
      done = { result: await work(transaction.check) }
    })
  } catch (error) {
    // The work counts as done, even if the lock could not be released.
    if (done === undefined) {
      if (!hasBegun && error instanceof Refusal && error.code === 'engine_away') return 'away'
      throw error
    }
  }
  if (done === undefined) throw new Error('a committed transaction did not run its work')
  return done
}

function isLockTimeout(error: unknown): boolean {
  return errorCode(error) === LOCK_NOT_AVAILABLE
}
