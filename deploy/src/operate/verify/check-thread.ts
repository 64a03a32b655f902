import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { parentPort } from 'node:worker_threads'
import type { RevisionFile } from '@gamenet/api'
import type { BatchExtent, CheckedEvents, LogFault, StoredRecords } from '@gamenet/engines/log'
import type { Blocks } from '@gamenet/projector'
import {
  type Calls,
  errorCode,
  type LogRecord,
  openCalls,
  openSealed,
  peopleOfValue,
  readSealedValue,
  topics
} from '@gamenet/schemas'
import { type LogChoice, type OpenLog, openLog } from '../../stores/log.js'
import { readStored, runsOf } from '../../stores/read-stored.js'

/* Reads the files of the log and of datasets for `gamenet verify`: on the main thread, it would delay answers. */

/** The methods of the thread. They reject if a call of the host does. */
export type CheckThread = {
  /** Reads all batches of an embedded log; of Kafka, those of the topics about people. */
  log(choice: LogChoice, loaded: readonly LoadedPartition[]): Promise<CheckedLog>
  /** Returns the files that do not match their SHA-256 or cannot be read; a missing file is not damaged. */
  datasets(directory: string, files: readonly RevisionFile[]): Promise<readonly DamagedRevision[]>
}

/** `code`: what the system said; undefined for content that was changed. */
export type DamagedRevision = RevisionFile & { readonly code?: string }

type ReadPhase = 'log' | 'datasets'

/** The methods that the thread calls. */
export type CheckHost = {
  /** Reports bytes that were read. */
  read(phase: ReadPhase, bytes: number): void
  /** Returns the existing seal keys of these people. */
  keys(people: readonly number[]): Promise<ReadonlyMap<number, Uint8Array>>
}

type Partition = Pick<LogFault, 'topic' | 'epoch' | 'partition'>
export type LoadedPartition = Partition & {
  /** The offset up to which it was loaded. */
  readonly next: number
  /** Its rows in the tables; undefined if they cannot be read. */
  readonly stored: { readonly events: number; readonly deadLetters: number } | undefined
  /** For topics about people: the blocks that need not be unpacked, because all their rows are in the event table. */
  readonly whole: Blocks | undefined
  /** The ids of undone imports: their events are in the log, but not in the event table. */
  readonly undone: ReadonlySet<string>
}

export type CheckedPartition = Partition & {
  /** Number of loaded events, except those of erased people and of undone imports. */
  readonly events: number
  /** The first events of people that their keys cannot decrypt: their number, and the lowest offset. */
  readonly unopened: { readonly count: number; readonly first: number } | undefined
}
export type CheckedLog = { readonly faults: readonly LogFault[]; readonly partitions: readonly CheckedPartition[] }

/**
 * Bytes between two reports: batches and files of some kilobytes are common, and each report waits for the busy host.
 */
const REPORT_BYTES = 32 * 1024 * 1024

const sealedTopics = new Set(topics.filter(({ people }) => people !== undefined).map(({ name }) => name))

if (parentPort === null) throw new Error('this file runs only as a worker thread')
const host: Calls<CheckHost> = openCalls<CheckHost>(parentPort, {
  log: async (choice, loaded) => {
    const log = await openLog(choice, 'verify', { isReading: true })
    try {
      const partitions = new Map<string, ReturnType<typeof partitionCheck>>()
      const { add, report } = reporter('log')
      const take = async (batch: CheckedEvents): Promise<void> => {
        const { topic, epoch, partition, bytes } = batch
        const key = JSON.stringify([topic, epoch, partition])
        const own = loaded.find((each) => isSame(each, batch))
        const check = partitions.get(key) ?? partitionCheck({ topic, epoch, partition }, own)
        partitions.set(key, check)
        await check.take(batch)
        await add(bytes)
      }
      const isRead = (batch: BatchExtent) => isToRead(batch, loaded)
      const faults = await (log.files?.check(take, isRead) ?? checkKafka(log, choice, take, isRead))
      await report()
      return { faults, partitions: [...partitions.values()].map(({ checked }) => checked()) }
    } finally {
      await log.close()
    }
  },
  datasets: async (directory, files) => {
    const { add, report } = reporter('datasets')
    const damaged: DamagedRevision[] = []
    for (const file of files) {
      try {
        const sha256 = await sha256Of(join(directory, file.name), add)
        if (sha256 !== file.sha256) damaged.push(file)
      } catch (error) {
        const code = errorCode(error)
        // A running service removes old revisions.
        if (code !== 'ENOENT') damaged.push({ ...file, code })
      }
    }
    await report()
    return damaged
  }
} satisfies CheckThread)

/**
 * Reads the topics about people once. Their batches are checked by their CRC; what follows a damaged one is not read.
 */
async function checkKafka(
  log: OpenLog,
  logChoice: LogChoice,
  take: (events: CheckedEvents) => Promise<void>,
  isRead: (batch: BatchExtent) => boolean
): Promise<LogFault[]> {
  const faults: LogFault[] = []
  await readStored(
    { log, logChoice },
    {
      topics: [...sealedTopics],
      take: async ({ records, ...place }) => {
        for (const run of runsOf(records)) {
          const first = run[0].offset
          const extent = { ...place, first, next: first + run.length }
          const bytes = run.reduce((sum, { value }) => sum + (value?.length ?? 0), 0)
          await take({ ...extent, bytes, stored: isRead(extent) ? storedOf(run) : undefined })
        }
      },
      onDamage: ({ topic, epoch, partition, wanted, next }, reason) =>
        faults.push({ topic, epoch, partition, first: wanted, next, reason })
    }
  )
  return faults
}

function storedOf(records: readonly LogRecord[]): StoredRecords {
  return {
    count: records.length,
    slice: (from, to) => records.slice(from, to),
    valueAt: (row) => Buffer.from(records[row]?.value ?? '').toString('latin1')
  }
}

async function sha256Of(path: string, add: (bytes: number) => Promise<void>): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) {
    hash.update(chunk)
    await add(chunk.length)
  }
  return hash.digest('hex')
}

/** Sums up bytes that were read, and reports them to the host in steps. */
function reporter(phase: ReadPhase) {
  let bytes = 0
  const report = async (): Promise<void> => {
    const more = bytes
    bytes = 0
    await host.call('read', phase, more)
  }
  const add = async (more: number): Promise<void> => {
    bytes += more
    if (bytes >= REPORT_BYTES) await report()
  }
  return { add, report }
}

function isSame(a: Partition, b: Partition): boolean {
  return a.topic === b.topic && a.epoch === b.epoch && a.partition === b.partition
}

/**
 * Returns whether a batch may have events of undone imports, of erased people, or the first one of a person. Unpacking
 * all batches of topics about people would take ten times as long.
 */
function isToRead(batch: BatchExtent, loaded: readonly LoadedPartition[]): boolean {
  const own = loaded.find((each) => isSame(each, batch))
  if (!sealedTopics.has(batch.topic)) return (own?.undone.size ?? 0) > 0
  const whole = own?.whole
  if (whole === undefined) return true
  for (let block = Math.floor(batch.first / whole.blockEvents); block * whole.blockEvents < batch.next; block += 1)
    if (!whole.blocks.has(block)) return true
  return false
}

/**
 * Counts the events of a partition and decrypts the first one of each person. That suffices: the others have the same
 * key, and the checksum of a batch shows that its bytes are those that were appended.
 */
function partitionCheck({ topic, epoch, partition }: Partition, loaded: LoadedPartition | undefined) {
  const hasKey = new Map<number, boolean>()
  let events = 0
  let unopened: CheckedPartition['unopened']
  const openFirsts = async (stored: StoredRecords, people: readonly (readonly number[])[]) => {
    const firsts = [...people.entries()].filter(([, each]) => {
      const unknown = each.filter((person) => !hasKey.has(person))
      for (const person of unknown) hasKey.set(person, false)
      return unknown.length > 0
    })
    if (firsts.length === 0) return
    const keys = await host.call('keys', [...new Set(firsts.flatMap(([, each]) => each))])
    for (const person of keys.keys()) hasKey.set(person, true)
    for (const [row, each] of firsts) {
      const [record] = stored.slice(row, row + 1)
      if (record === undefined) continue
      const { offset, headers, value } = record
      const sealed = readSealedValue(value)
      const own = each.flatMap((person) => keys.get(person) ?? [])
      if (sealed === undefined || own.length < each.length) continue
      try {
        openSealed(sealed, { topic, id: headers.ce_id ?? '' }, own)
      } catch {
        unopened = { count: (unopened?.count ?? 0) + 1, first: unopened?.first ?? offset }
      }
    }
  }
  return {
    take: async ({ first, next, stored }: CheckedEvents): Promise<void> => {
      const count = Math.max(0, Math.min(next, loaded?.next ?? 0) - first)
      if (stored === undefined) {
        events += count
        return
      }
      const people = Array.from({ length: stored.count }, (_, row) => peopleOfValue(stored.valueAt(row)))
      await openFirsts(stored, people)
      const isUndone = (row: number) =>
        loaded?.undone.size !== 0 && loaded?.undone.has(stored.slice(row, row + 1)[0]?.headers.ce_importid ?? '')
      events += people
        .slice(0, count)
        .filter((each, row) => each.every((person) => hasKey.get(person)) && !isUndone(row)).length
    },
    checked: (): CheckedPartition => ({ topic, epoch, partition, events, unopened })
  }
}
