import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { directoryBytes } from '../src/data-directory/disk-usage.js'
import { Caller, signIn, startAuth, startPeopleService } from './service/people-service.js'

/** `CAMPAIGN_CASES` chooses a number of writes in all; those done in CAMPAIGN_DIRECTORY are not repeated. */
const WRITES = Number(process.env.CAMPAIGN_CASES ?? 500_000)
const BLOCK_WRITES = 20_000
const USERS = 200
const CALLERS = 64
const MIB = 1024 * 1024
/** What is written between two vacuums. */
const GROWTH_BYTES_MAX = 16 * MIB
/** What is written between two checkpoints, which follow 64 MiB with a delay of 10 s, and the file that is being written. */
const LOG_BYTES_MAX = (64 + 32 + 16) * MIB

test(`the embedded write side stays as large as its contents over ${WRITES} writes`, { timeout: 0 }, async (t) => {
  const folder = process.env.CAMPAIGN_DIRECTORY ?? t.testdir({})
  const file = join(folder, 'bytes-of-tables.json')
  /** Bytes of tables and indexes after each block of writes. */
  const sizes: number[] = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
  const data = join(folder, 'data')
  const auth = await startAuth(t)
  const service = await startPeopleService(data, auth)
  t.teardown(() => service.kill())
  const caller = new Caller(service, CALLERS)
  t.teardown(() => caller.close())
  const users = await Promise.all(auth.people.slice(0, USERS).map((person) => signIn(auth, person)))
  const write = async (n: number): Promise<void> => {
    const me = users[n % USERS]
    const name = (user: number) => users[user % USERS]?.person.username ?? ''
    const { status, body } =
      n < USERS || n % 2 === 0
        ? await caller.ask('PATCH', `/api/profile/${name(n)}`, me, { bio: `${n} `.repeat(40) })
        : await caller.ask('POST', `/api/profile/${name(n + 1 + (n % 97))}/reputation`, me, {
            stars: 1 + (n % 5),
            comment: `${n} `.repeat(40)
          })
    if (status !== 200) throw new Error(`write ${n} got ${status}: ${JSON.stringify(body)}`)
  }
  let next = sizes.length * BLOCK_WRITES
  while (next < WRITES) {
    const end = next + BLOCK_WRITES
    const begun = performance.now()
    const work = async (): Promise<void> => {
      for (let n = next; n < end; n = next) {
        next += 1
        await write(n)
      }
    }
    await Promise.all(Array.from({ length: CALLERS }, work))
    const seconds = (performance.now() - begun) / 1000
    const [tables, log] = await Promise.all(
      ['base', 'pg_wal'].map((name) => directoryBytes(join(data, 'writes', name)))
    )
    if (!tables || !log) throw new Error(`no files of the embedded PostgreSQL in ${data}`)
    sizes.push(tables)
    writeFileSync(file, JSON.stringify(sizes))
    t.ok(log <= LOG_BYTES_MAX, `a write-ahead log of ${log} bytes`)
    t.comment(`${next} writes: ${tables} bytes; ${Math.round(BLOCK_WRITES / seconds)} writes/s`)
  }
  const [first = 0] = sizes
  const largest = Math.max(...sizes)
  t.ok(largest - first < GROWTH_BYTES_MAX, `${first} bytes after ${BLOCK_WRITES} writes, at most ${largest}`)
  const metrics = await (await fetch(`${service.operatorUrl}/metrics`)).text()
  const age = Number(/^gamenet_postgres_transaction_age (\d+)$/m.exec(metrics)?.[1])
  t.comment(`age of the oldest transaction: ${age}`)
  t.ok(age > 0 && age < 3 * WRITES, 'transactions are watched')
  t.equal(await service.stop(), 0)
})
