import type { LogReader } from '@gamenet/projector'
import type { LogBatch, LogMessage, LogRecord, PartitionExtent } from '@gamenet/schemas'
import { type Life, WORLD } from './virtual-time.js'
import type { World } from './world.js'

type Partition = { readonly topic: string; readonly partition: number; readonly records: LogRecord[] }
type Consumption = Parameters<LogReader['consume']>[0]

/** A consumer group: its members and the partitions assigned to each. */
type Group = { readonly members: Set<Member>; readonly owners: Map<Partition, Member> }

/** A reading process. */
type Member = Consumption & {
  readonly group: Group
  readonly life: Life
  readonly failed: (error: unknown) => void
  /** The partitions that it reads, whether or not the group has assigned them to another member meanwhile. */
  readonly readings: Map<Partition, { isOver: boolean }>
  /** The readings of all partitions that were ever assigned to it. */
  readonly assigned: Set<{ isOver: boolean }>
  /** The end of the last reading, by partition: readings are sequential. */
  readonly ends: Map<Partition, Promise<void>>
}

/** Session timeout of a group member. */
const SESSION_MS = 6000
/** How long a member may continue to read a partition that the group has assigned to another one. */
const UNAWARE_MS = 4000
const FETCH_MS = 50
const BATCH_RECORDS_MAX = 6
const EPOCH = 0

/**
 * A log in memory with the guarantees of the engines: a resolved append is durable, records of a key are in order, a
 * partition is read by one process of the group, or for a while by two.
 */
export class SimulatedLog {
  /** Committed offsets of the group by `topic/partition`. */
  readonly committed = new Map<string, number>()
  readonly #world: World
  readonly #partitions: Partition[]
  readonly #groups = new Map<string, Group>()
  /** The readers at the end of a partition. */
  #waiting: { readonly partition: Partition; readonly life: Life; wake(): void }[] = []

  constructor(world: World, topics: readonly string[], partitions: number) {
    this.#world = world
    this.#partitions = topics.flatMap((topic) =>
      Array.from({ length: partitions }, (_, partition) => ({ topic, partition, records: [] }))
    )
  }

  get partitions(): readonly Partition[] {
    return this.#partitions
  }

  append(topic: string, messages: readonly LogMessage[]): Promise<void> {
    const { chance } = this.#world
    const put = (share: number) => {
      const upTo = new Map<Partition, number>()
      for (const message of messages) {
        const partition = this.#partitionOf(topic, message.key)
        // The append to each partition is atomic.
        if (share < 1 && !upTo.has(partition)) upTo.set(partition, chance.happens(share) ? 1 : 0)
        if (share === 1 || upTo.get(partition) === 1) {
          partition.records.push({ offset: partition.records.length, ...message })
          this.#wake(partition)
        }
      }
    }
    return this.#world.call('log', {
      what: `append of ${messages.length} to ${topic}: ${messages[0]?.headers.ce_id ?? 'no event'}`,
      done: () => put(1),
      torn: () => put(chance.number()),
      takesSpace: true
    })
  }

  extents(topic: string): Promise<readonly PartitionExtent[]> {
    return this.#world.call('log', { what: `reads extents of ${topic}`, done: () => this.extentsNow(topic) })
  }

  extentsNow(topic: string): PartitionExtent[] {
    return this.#partitions
      .filter((each) => each.topic === topic)
      .map(({ partition, records }) => ({ epoch: EPOCH, partition, first: 0, next: records.length }))
  }

  async commit(
    topic: string,
    { partition, next }: { readonly partition: number; readonly next: number }
  ): Promise<void> {
    await this.#world.call('log', {
      what: `commits ${topic}/${partition} up to ${next}`,
      done: () => void this.committed.set(`${topic}/${partition}`, next)
    })
  }

  /** Reads as a member of the group, until the signal aborts or something fails. */
  async consume(consumption: Consumption, groupName: string): Promise<void> {
    const group = this.#groups.get(groupName) ?? { members: new Set(), owners: new Map() }
    this.#groups.set(groupName, group)
    const life = this.#world.time.current
    await this.#world.call('log', { what: 'joins the group', done: () => undefined })
    let failed: (error: unknown) => void = () => undefined
    const failure = new Promise<never>((_, reject) => {
      failed = reject
    })
    const reading = { readings: new Map(), assigned: new Set<{ isOver: boolean }>(), ends: new Map() }
    const member: Member = { ...consumption, group, life, failed, ...reading }
    let abort: () => void = () => undefined
    const aborted = new Promise<void>((resolve) => {
      abort = resolve
    })
    if (consumption.signal.aborted) abort()
    consumption.signal.addEventListener('abort', abort)
    group.members.add(member)
    this.#share(group)
    try {
      await Promise.race([aborted, failure])
    } finally {
      consumption.signal.removeEventListener('abort', abort)
      this.#leave(member)
      // Nothing is delivered after `consume` has returned.
      await Promise.allSettled(member.ends.values())
    }
  }

  /** Assigns the partitions to the members; a member notices a lost one later. */
  rebalance(): void {
    for (const group of this.#groups.values()) this.#share(group)
  }

  #share({ members: all, owners }: Group): void {
    const { time, chance } = this.#world
    const members = [...all]
    for (const partition of this.#partitions) {
      const able = members.filter(({ topics }) => topics.includes(partition.topic))
      const before = owners.get(partition)
      const owner = able[chance.below(Math.max(1, able.length))]
      if (owner === before) continue
      if (before !== undefined) {
        const reading = before.readings.get(partition)
        before.readings.delete(partition)
        time.after(WORLD, chance.below(UNAWARE_MS), () => {
          if (reading !== undefined) reading.isOver = true
          this.#wake(partition)
        })
      }
      if (owner === undefined) owners.delete(partition)
      else {
        owners.set(partition, owner)
        const reading = { isOver: false }
        owner.readings.set(partition, reading)
        owner.assigned.add(reading)
        this.#world.note(`is assigned ${partition.topic}/${partition.partition}`, owner.life)
        time.after(owner.life, chance.below(20), () => {
          const end = (owner.ends.get(partition) ?? Promise.resolve()).then(() => this.#read(owner, partition, reading))
          owner.ends.set(partition, end)
          end.catch((error: unknown) => owner.failed(error))
        })
      }
    }
  }

  /** Removes a dead member when its session times out. */
  noticeDeath(life: Life): void {
    for (const member of this.#allMembers()) {
      if (member.life === life)
        this.#world.time.after(WORLD, this.#world.chance.below(SESSION_MS), () => this.#leave(member))
    }
  }

  /** All readers lose their connection. */
  disconnect(): void {
    for (const { life, failed } of this.#allMembers()) {
      this.#world.time.after(life, 0, () => failed(new Error('the log has closed the connection')))
    }
  }

  #allMembers(): Member[] {
    return [...this.#groups.values()].flatMap(({ members }) => [...members])
  }

  #leave(member: Member): void {
    if (!member.group.members.delete(member)) return
    for (const reading of member.assigned) reading.isOver = true
    for (const partition of member.ends.keys()) this.#wake(partition)
    this.#share(member.group)
  }

  #wake(partition: Partition): void {
    const { time, chance } = this.#world
    const woken = this.#waiting.filter((each) => each.partition === partition)
    this.#waiting = this.#waiting.filter((each) => each.partition !== partition)
    for (const { life, wake } of woken) time.after(life, chance.below(FETCH_MS), wake)
  }

  async #read(member: Member, partition: Partition, reading: { readonly isOver: boolean }): Promise<void> {
    const { time, chance } = this.#world
    let next = await member.startAt(partition.topic, EPOCH, partition.partition)
    while (!reading.isOver && !member.signal.aborted) {
      const records = partition.records.slice(next, next + chance.between(1, BATCH_RECORDS_MAX))
      if (records.length === 0) {
        await new Promise<void>((wake) => this.#waiting.push({ partition, life: member.life, wake }))
        continue
      }
      await time.pause(member.life, chance.below(this.#world.faults.delayMs + 1))
      const batch: LogBatch = { topic: partition.topic, epoch: EPOCH, partition: partition.partition, records }
      await member.deliver(batch)
      next += records.length
    }
  }

  #partitionOf(topic: string, key: string): Partition {
    const all = this.#partitions.filter((each) => each.topic === topic)
    const hash = [...key].reduce((sum, character) => Math.imul(sum, 31) + character.charCodeAt(0), 7) >>> 0
    const found = all[hash % all.length]
    if (found === undefined) throw new Error(`The simulated log has no topic ${topic}.`)
    return found
  }
}
