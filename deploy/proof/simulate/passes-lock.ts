import { Refusal } from '@gamenet/schemas'
import type { LockTransaction, LockTransactions } from '../../src/stores/postgres-pass-lock.js'
import type { Life } from './virtual-time.js'
import type { World } from './world.js'

type Held = 'shared' | 'exclusive'
type Transaction = { readonly life: Life; isBroken: boolean; held: Held | undefined }
type Waiting = { readonly by: Transaction; readonly wants: Held; grant(): void; fail(error: Error): void }

/** The program's `lock_timeout`. */
const LOCK_WAIT_MS = 8000

/** PostgreSQL's advisory lock, held by transactions: shared by many, or exclusive. */
export class PassesLock {
  readonly #world: World
  readonly #transactions = new Set<Transaction>()
  #waiting: Waiting[] = []

  constructor(world: World) {
    this.#world = world
  }

  /** The interface for `sharedPasses`. */
  readonly transactions: LockTransactions = (work) => this.#transaction(work)

  /** Releases the locks of a process that has died. */
  noticeDeath(life: Life): void {
    for (const each of this.#transactions) if (each.life === life) this.#end(each)
  }

  /** Ends all transactions. */
  disconnect(): void {
    for (const each of this.#transactions) {
      each.isBroken = true
      this.#end(each)
    }
  }

  async #transaction<Result>(work: (transaction: LockTransaction) => Promise<Result>): Promise<Result> {
    const world = this.#world
    const transaction: Transaction = { life: world.time.current, isBroken: false, held: undefined }
    await world
      .call('postgres', { what: 'begins', done: () => void this.#transactions.add(transaction) })
      .catch((error: Error) => {
        this.#end(transaction)
        if (world.away.has('postgres')) throw new Refusal('engine_away')
        throw error
      })
    try {
      await this.#execute(transaction, 'sets its limits')
      const result = await work({
        lock: async (_, how) => {
          await this.#execute(transaction, `asks for the lock, ${how}`)
          await this.#lock(transaction, how)
        },
        check: () => this.#execute(transaction, 'checks its connection')
      })
      await this.#execute(transaction, 'commit')
      return result
    } finally {
      this.#end(transaction)
    }
  }

  /** A failed or unanswered statement ends the connection. */
  async #execute(transaction: Transaction, what: string): Promise<void> {
    const broken = () => {
      if (transaction.isBroken) throw new Error('the connection to PostgreSQL has ended')
    }
    await this.#world.call('postgres', { what, done: broken }).catch((error: unknown) => {
      transaction.isBroken = true
      this.#end(transaction)
      throw error
    })
  }

  #lock(transaction: Transaction, wants: Held): Promise<void> {
    const { time } = this.#world
    return new Promise((resolve, reject) => {
      const later = (work: () => void) => void time.after(transaction.life, 0, work)
      const waiting = {
        by: transaction,
        wants,
        grant: () => later(resolve),
        fail: (error: Error) => later(() => reject(error))
      }
      this.#waiting.push(waiting)
      this.#grant()
      time.after(transaction.life, LOCK_WAIT_MS, () => {
        if (!this.#waiting.includes(waiting)) return
        this.#waiting = this.#waiting.filter((each) => each !== waiting)
        reject(Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' }))
      })
    })
  }

  /** Grants waiting requests in their order. */
  #grant(): void {
    for (;;) {
      const [first] = this.#waiting
      if (first === undefined) return
      const held = [...this.#transactions].flatMap((each) => (each.held === undefined ? [] : [each.held]))
      if (first.wants === 'exclusive' ? held.length > 0 : held.includes('exclusive')) return
      this.#waiting.shift()
      first.by.held = first.wants
      first.grant()
    }
  }

  #end(transaction: Transaction): void {
    this.#transactions.delete(transaction)
    for (const each of this.#waiting)
      if (each.by === transaction) each.fail(new Error('the connection to PostgreSQL has ended'))
    this.#waiting = this.#waiting.filter(({ by }) => by !== transaction)
    this.#grant()
  }
}
