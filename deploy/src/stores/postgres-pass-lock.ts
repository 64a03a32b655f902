import type { LaneName, Postgres } from '@gamenet/engines'
import type { PassLock } from '@gamenet/projector'
import { StepsHeld } from '@gamenet/projector/rebuild'
import { errorCode, FILLS_LOCK, Mutex, PASSES_LOCK, Refusal } from '@gamenet/schemas'
import { FailureError } from '../config.js'

/** Longest wait for exclusive use. A pass takes seconds, at most some tens of seconds. */
const EXCLUSIVE_WAIT_MS = 300_000
/** A waiter that waits longer for the lock goes to the end of the queue, so that those after it run first. */
const LOCK_WAIT_MS = 8000
const LOCK_NOT_AVAILABLE = '55P03'
/**
 * Interval of a holder's signs of life. PostgreSQL ends a transaction that rests for a minute: that of a stopped
 * process.
 */
const RENEW_MS = 10_000
/**
 * Time after the last answered statement for which the lock is certainly held. Shorter than the minute, longer than the
 * 30 s for which ClickHouse waits for the rest of a body whose sender was stopped.
 */
const SURE_MS = 45_000
const HELD = 'PostgreSQL is unavailable; this step needs its lock and waits.'
const BUSY = 'A rebuild is starting, or event tables are being swapped; this step waits.'
const LOST =
  'This process was stopped, or PostgreSQL did not answer, for so long that another process may have its lock. ' +
  'Nothing more is written, and the work is repeated.'
const HELD_UP = 'Tables are being compared, or rows erased; this step waits and is repeated.'

/**
 * Locks that are required. Passes run without PostgreSQL; rebuild steps wait until it is back, because no reader
 * depends on them.
 */
const WAITS: ReadonlySet<number> = new Set([FILLS_LOCK])

type Lock = typeof PASSES_LOCK | typeof FILLS_LOCK

/** Lanes on which no holder of a lock writes. */
const LANES_WITHOUT: Readonly<Record<Lock, readonly LaneName[]>> = {
  [PASSES_LOCK]: ['rebuild'],
  [FILLS_LOCK]: ['loader', 'projections']
}

/** Commits the transaction of `work` when it resolves. Its locks are released then, and by the death of the process. */
export type LockTransactions = <Result>(work: (transaction: LockTransaction) => Promise<Result>) => Promise<Result>

export type LockTransaction = {
  /** Acquires a lock, shared or exclusive. Rejects with {@link LOCK_NOT_AVAILABLE} after {@link LOCK_WAIT_MS}. */
  lock(lock: Lock, how: 'shared' | 'exclusive'): Promise<void>
  /** Rejects when the connection has ended: another process may hold the lock. */
  check(): Promise<void>
}

/** A lock, and the instant at which the last answered statement of its transaction was sent. */
type Held = { lock?: Lock; sentMs: number }

/** The locks that this process holds, as far as it knows. */
export class HeldLocks {
  readonly all = new Set<Held>()
  readonly #sureMs: number

  constructor({ sureMs = SURE_MS } = {}) {
    this.#sureMs = sureMs
  }

  /**
   * Throws while PostgreSQL may have released a lock under which this lane still works: the process was stopped, or
   * PostgreSQL did not answer. To be called directly before each write.
   */
  requireSure(lane: LaneName): void {
    for (const { lock, sentMs } of this.all) {
      if (lock === undefined || LANES_WITHOUT[lock].includes(lane)) continue
      // The clock of the wall also runs while a machine sleeps.
      if (Math.abs(Date.now() - sentMs) > this.#sureMs) throw new Error(LOST)
    }
  }
}

/**
 * Advisory locks of PostgreSQL. A process that does not renew its locks, because it is stopped, loses them in a
 * minute.
 */
export function advisoryLocks(
  writes: () => Promise<Postgres>,
  { heldLocks, renewMs = RENEW_MS }: { readonly heldLocks: HeldLocks; readonly renewMs?: number }
): LockTransactions {
  return async (work) => {
    const postgres = await writes()
    return await postgres.transaction(async (transaction) => {
      await transaction.script(`SET LOCAL lock_timeout = ${LOCK_WAIT_MS}`)
      const held: Held = { sentMs: Date.now() }
      const mutex = new Mutex()
      const ask = (sql: string, values: readonly unknown[] = []) =>
        mutex.run(async () => {
          const sentMs = Date.now()
          await transaction.query(sql, values)
          held.sentMs = sentMs
        })
      const check = () => ask('SELECT 1')
      const lock = async (lock: Lock, how: 'shared' | 'exclusive') => {
        await ask(`SELECT pg_advisory_xact_lock${how === 'shared' ? '_shared' : ''}($1)`, [lock])
        held.lock = lock
      }
      const renewing = setInterval(() => void check().catch(() => undefined), renewMs)
      heldLocks.all.add(held)
      try {
        return await work({ lock, check })
      } finally {
        heldLocks.all.delete(held)
        clearInterval(renewing)
        await mutex.idle()
      }
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
            'PostgreSQL is unavailable; without its lock other projectors could write into the tables meanwhile. ' +
              'Repeat the command when PostgreSQL is back.'
          )
        } catch (error) {
          if (!isLockTimeout(error)) throw error
        }
      }
      throw new FailureError(
        `Another projector has not ended its pass, or its step of a rebuild, within ${EXCLUSIVE_WAIT_MS / 1000} s; ` +
          `check \`gamenet status\` there, then repeat the command.`
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

const isLockTimeout = (error: unknown): boolean => errorCode(error) === LOCK_NOT_AVAILABLE
