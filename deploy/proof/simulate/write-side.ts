import type { People } from '@gamenet/ingest'
import type { BoardLease, BoardLeases, Outbox, OutboxTransaction, VisitResult } from '@gamenet/ingest/internals'
import { instantOf, nameKey, type ProfileRated, ratingTopic, type Seal } from '@gamenet/schemas'
import { PassesLock } from './passes-lock.js'
import { TopicLocks } from './topic-locks.js'
import { type Life, WORLD } from './virtual-time.js'
import type { Effect, World } from './world.js'

type OutboxRow = { readonly id: number; readonly topic: string; readonly event: unknown }

type LeaseRow = Omit<VisitResult, 'restS'> & {
  readonly titleId: string
  readonly leaderboardId: number | null
  dueAtMs: number
  holder: string | null
  leaseUntilMs: number
}

const LEASE_S = 45
/** Maximum delay until PostgreSQL notices that the owner of a lock is dead. */
const LOCK_MS = 3000

/** The simulated PostgreSQL: ratings, their outbox, people and leases of boards. */
export class SimulatedPostgres {
  readonly ratings = new Map<string, ProfileRated>()
  outbox: OutboxRow[] = []
  readonly passes: PassesLock
  readonly fills: PassesLock
  readonly topics: TopicLocks
  readonly shortestS: number
  readonly #world: World
  #leases: LeaseRow[] = []
  #lastId = 0
  #lastHolder = 0
  #lockedBy: { readonly life: Life } | undefined
  readonly #people = new Map<string, Seal>()
  readonly #erased = new Set<string>()
  #lastPerson = 0

  constructor(world: World, shortestS: number) {
    this.#world = world
    this.passes = new PassesLock(world)
    this.fills = new PassesLock(world)
    this.topics = new TopicLocks(world)
    this.shortestS = shortestS
  }

  /** Stores a rating and its event in one transaction. */
  rate(username: string, raterUsername: string, stars: number): Promise<void> {
    return this.#call({
      what: `${raterUsername} rates ${username}: ${stars}`,
      done: () => {
        const users = [username, raterUsername].map(nameKey)
        // An erased user has no account.
        if (users.some((userKey) => this.#erased.has(userKey))) return
        const key = users.join('|')
        const revision = (this.ratings.get(key)?.revision ?? 0) + 1
        const ratedAt = instantOf(this.#world.time.nowMs)
        const rated: ProfileRated = { username, raterUsername, stars, comment: null, revision, ratedAt }
        this.ratings.set(key, rated)
        this.#lastId += 1
        this.outbox.push({ id: this.#lastId, topic: ratingTopic.name, event: rated })
      }
    })
  }

  /** Deletes the person with the key, the ratings and the unpublished events in one transaction. */
  erase(userKey: string): Promise<void> {
    return this.#call({
      what: `erases ${userKey}`,
      done: () => {
        this.#erased.add(userKey)
        this.#people.delete(userKey)
        for (const key of this.ratings.keys()) if (key.split('|').includes(userKey)) this.ratings.delete(key)
        this.outbox = this.outbox.filter(({ event }) => {
          const { username, raterUsername } = event as ProfileRated
          return ![username, raterUsername].map(nameKey).includes(userKey)
        })
      }
    })
  }

  /** The outbox of relays. */
  get relayed(): Outbox {
    const transactionOf = (transaction: Transaction): OutboxTransaction => ({
      lock: () =>
        this.#call({
          what: 'asks for the lock of relays',
          done: () => {
            const isMine = this.#lockedBy === undefined || this.#lockedBy === transaction
            // The lock of a process that has died meanwhile is released at once.
            if (isMine && !transaction.life.isOver) this.#lockedBy = transaction
            return isMine
          }
        }),
      readLeft: (ids) =>
        this.#call({
          what: 'reads the remaining rows of the outbox',
          done: () => new Set(this.outbox.map(({ id }) => String(id)).filter((id) => ids.includes(id)))
        }),
      deleteRows: (ids) =>
        this.#call({
          what: 'deletes from the outbox at the commit',
          done: () => {
            for (const id of ids) transaction.deleted.add(id)
          }
        })
    })
    return {
      readOldest: (count, except) =>
        this.#call({
          what: 'reads the outbox',
          done: () =>
            this.outbox
              .map((row) => ({ ...row, id: String(row.id) }))
              .filter(({ id }) => !except.has(id))
              .slice(0, count)
        }),
      deleteRows: (ids) => this.#call({ what: 'deletes from the outbox', done: () => this.#deleteRows(new Set(ids)) }),
      transaction: async (work) => {
        const transaction: Transaction = { life: this.#world.time.current, deleted: new Set() }
        try {
          const result = await work(transactionOf(transaction))
          await this.#call({ what: 'commit', done: () => this.#end(transaction, true) })
          return result
        } catch (error) {
          this.#end(transaction, false)
          throw error
        }
      }
    }
  }

  get people(): People {
    return {
      seals: (names) =>
        this.#call({
          what: 'reads seals',
          done: () =>
            new Map(
              [...names].map(nameKey).flatMap((userKey) => {
                const seal = this.#sealOf(userKey)
                return seal === undefined ? [] : [[userKey, seal] as const]
              })
            )
        }),
      passedOver: () => undefined
    }
  }

  sealKeys(people: readonly number[]): Promise<ReadonlyMap<number, Uint8Array>> {
    return this.#call({
      what: 'reads seal keys',
      done: () =>
        new Map([...this.#people.values()].filter(({ id }) => people.includes(id)).map(({ id, key }) => [id, key]))
    })
  }

  sealKeyOf(person: number): Uint8Array | undefined {
    return [...this.#people.values()].find(({ id }) => id === person)?.key
  }

  /** Releases the locks of a dead process, after a delay. */
  noticeDeath(life: Life): void {
    const { time, chance } = this.#world
    time.after(WORLD, chance.below(LOCK_MS), () => {
      if (this.#lockedBy?.life === life) this.#lockedBy = undefined
      for (const lock of [this.passes, this.fills, this.topics]) lock.noticeDeath(life)
    })
  }

  /** Makes every lease due, as if no visit had failed. */
  hastenAll(): void {
    for (const lease of this.#leases) lease.dueAtMs = 0
  }

  /** Ends the leases that were acquired before an instant by processes that have died since. */
  endLeasesOf(beforeMs: number): void {
    for (const lease of this.#leases) {
      if (lease.holder !== null && lease.leaseUntilMs < beforeMs + LEASE_S * 1000)
        lease.leaseUntilMs = Math.min(lease.leaseUntilMs, this.#world.time.nowMs)
    }
  }

  get boardsAtRest(): boolean {
    const { nowMs } = this.#world.time
    return (
      this.#leases.length > 0 &&
      this.#leases.every((lease) => lease.dueAtMs > nowMs && lease.failures === 0 && lease.holder === null)
    )
  }

  #sealOf(userKey: string): Seal | undefined {
    if (this.#erased.has(userKey)) return undefined
    const known = this.#people.get(userKey)
    if (known !== undefined) return known
    this.#lastPerson += 1
    const id = this.#lastPerson
    const seal = { id, key: new Uint8Array(32).fill(id) }
    this.#people.set(userKey, seal)
    return seal
  }

  #end(transaction: Transaction, isCommitted: boolean): void {
    if (isCommitted) this.#deleteRows(transaction.deleted)
    if (this.#lockedBy === transaction) this.#lockedBy = undefined
  }

  #deleteRows(ids: ReadonlySet<string>): void {
    this.outbox = this.outbox.filter(({ id }) => !ids.has(String(id)))
  }

  #call<Result>(effect: Effect<Result>): Promise<Result> {
    return this.#world.call('postgres', effect)
  }

  /** The leases of boards; each call is one statement. */
  get leases(): BoardLeases {
    const isFree = (lease: LeaseRow) => lease.holder === null || lease.leaseUntilMs <= this.#world.time.nowMs
    const held = (lease: BoardLease) =>
      this.#leases.find(
        (each) =>
          each.titleId === lease.titleId && each.leaderboardId === lease.leaderboardId && each.holder === lease.holder
      )
    const change = (what: string, lease: BoardLease, work: (row: LeaseRow) => void) =>
      this.#call({
        what: `${what} of ${lease.titleId}/${lease.leaderboardId}`,
        done: () => {
          const row = held(lease)
          if (row !== undefined) work(row)
          return row !== undefined
        }
      })
    return {
      acquire: (count) => this.#call({ what: 'acquires leases', done: () => this.#acquire(count, isFree) }),
      renew: (lease) =>
        change('renews the lease', lease, (row) => {
          row.leaseUntilMs = this.#world.time.nowMs + LEASE_S * 1000
        }),
      end: (lease, { restS, ...visited }) =>
        change('ends the visit', lease, (row) => {
          Object.assign(row, visited, { holder: null, dueAtMs: this.#world.time.nowMs + restS * 1000 })
        }),
      drop: (lease) =>
        change('drops the lease', lease, (row) => {
          this.#leases = this.#leases.filter((each) => each !== row)
        }),
      release: async (leases) => {
        for (const lease of leases) {
          await change('releases the lease', lease, (row) => {
            Object.assign(row, { holder: null, isUnclean: lease.wasUnclean })
          })
        }
      },
      add: async (titleIds) => {
        await this.#call({ what: 'adds titles', done: () => titleIds.map((titleId) => this.#add(titleId, null)) })
      },
      setBoards: (titleId, leaderboardIds) => this.#setBoards(titleId, leaderboardIds, isFree),
      hastenList: (titleId) =>
        this.#call({
          what: `hastens the list of ${titleId}`,
          done: () => {
            const row = this.#leases.find((each) => each.titleId === titleId && each.leaderboardId === null)
            if (row?.failures === 0) row.dueAtMs = Math.min(row.dueAtMs, this.#world.time.nowMs)
          }
        }),
      count: () => this.#call({ what: 'counts leases', done: () => ({ all: this.#leases.length, due: 0 }) }),
      now: () => this.#call({ what: 'reads the time', done: () => new Date(this.#world.time.nowMs) })
    }
  }

  #acquire(count: number, isFree: (lease: LeaseRow) => boolean): BoardLease[] {
    const { nowMs } = this.#world.time
    const due = this.#leases.filter((lease) => lease.dueAtMs <= nowMs && isFree(lease))
    return due
      .sort((a, b) => a.dueAtMs - b.dueAtMs)
      .slice(0, count)
      .map((row) => {
        this.#lastHolder += 1
        const { titleId, leaderboardId, periodS, failures, isUnclean: wasUnclean, appended, equal } = row
        const holder = `holder ${this.#lastHolder}`
        Object.assign(row, { holder, leaseUntilMs: nowMs + LEASE_S * 1000, isUnclean: true })
        return { titleId, leaderboardId, holder, periodS, failures, wasUnclean, appended, equal }
      })
  }

  #add(titleId: string, leaderboardId: number | null): boolean {
    if (this.#leases.some((each) => each.titleId === titleId && each.leaderboardId === leaderboardId)) return false
    const visited = { periodS: this.shortestS, failures: 0, isUnclean: false, appended: [], equal: null }
    this.#leases.push({
      titleId,
      leaderboardId,
      dueAtMs: this.#world.time.nowMs,
      holder: null,
      leaseUntilMs: 0,
      ...visited
    })
    return true
  }

  async #setBoards(titleId: string, ids: readonly number[], isFree: (lease: LeaseRow) => boolean) {
    const added = await this.#call({
      what: `adds boards of ${titleId}`,
      done: () => ids.filter((id) => this.#add(titleId, id)).length
    })
    await this.#call({
      what: `drops boards of ${titleId}`,
      done: () => {
        const isGone = (lease: LeaseRow) =>
          lease.titleId === titleId &&
          lease.leaderboardId !== null &&
          !ids.includes(lease.leaderboardId) &&
          isFree(lease)
        this.#leases = this.#leases.filter((lease) => !isGone(lease))
      }
    })
    await this.#call({
      what: `postpones the list of ${titleId}`,
      done: () => {
        const row = this.#leases.find((each) => each.titleId === titleId && each.leaderboardId === null)
        if (row !== undefined) row.dueAtMs = Math.max(row.dueAtMs, this.#world.time.nowMs + row.periodS * 1000)
      }
    })
    return { added }
  }
}

type Transaction = { readonly life: Life; readonly deleted: Set<string> }
