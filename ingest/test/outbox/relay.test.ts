import { deepEqual } from 'node:assert/strict'
import type { Postgres } from '@gamenet/engines'
import { runs } from '@gamenet/engines/testing'
import {
  decodeEvent,
  FILLS_LOCK,
  type LogMessage,
  nameHashSql,
  PASSES_LOCK,
  PEOPLE_LOCK,
  type ProfileChanged,
  profileTopic,
  type WriteTransactions
} from '@gamenet/schemas'
import fc from 'fast-check'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { createPeople, createRelay, type Log, outboxOf, sealKeys } from '../../src/index.js'
import { type RelayNeeds, relayOnce } from '../../src/outbox/relay-outbox.js'
import { onEachWriteSide } from './write-sides.js'

const USERS = ['Ann', 'Bob', 'Cleo', 'dan']
const QUIET = { info() {}, warn() {}, error() {} }
const tick = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Makes some calls fail, by their number. */
class Fate {
  calls = 0
  constructor(readonly ends: ReadonlyMap<number, 'before' | 'after'> = new Map()) {}

  /** Fails instead of the call or after it, like a process that dies there. */
  async call<Result>(work: () => Promise<Result>): Promise<Result> {
    const end = this.ends.get(this.calls)
    this.calls += 1
    await tick()
    if (end === 'before') throw new Error('dead')
    const result = await work()
    if (end === 'after') throw new Error('dead')
    return result
  }
}

const fated = (writes: WriteTransactions, fate: Fate): WriteTransactions => ({
  query: (sql, values) => fate.call(() => writes.query(sql, values)),
  transaction: (work) =>
    fate.call(() =>
      writes.transaction((transaction) =>
        work({ query: (sql, values) => fate.call(() => transaction.query(sql, values)) })
      )
    )
})

/** A log in memory; like Kafka it can store a part of an append without acknowledging it. */
function memoryLog() {
  const messages: LogMessage[] = []
  const append = async (_topic: string, added: readonly LogMessage[]) => void messages.push(...added)
  const on = (fate: Fate): Log => ({
    append: (topic, added) =>
      fate.call(async () => {
        const [first] = added
        // The messages of one key are stored together, like those of one partition.
        await fate.call(() =>
          append(
            topic,
            added.filter(({ key }) => key === first?.key)
          )
        )
        await fate.call(() =>
          append(
            topic,
            added.filter(({ key }) => key !== first?.key)
          )
        )
      })
  })
  return { messages, on }
}

async function emptied({ postgres }: { postgres: Postgres }): Promise<void> {
  await postgres.query('TRUNCATE outbox, person, profile, rating, erasure, erasure_salt')
}

/** One edit of a profile, as an API makes it. */
async function edit(writes: Postgres, username: string, bio: string): Promise<void> {
  await writes.transaction(async (transaction) => {
    const userKey = username.toLowerCase()
    const [row] = await transaction.query<{ revision: string }>(
      `INSERT INTO profile (user_key, username, bio, revision, changed_at)
       VALUES ($1, $2, $3, nextval('revision'), now())
       ON CONFLICT (user_key) DO UPDATE SET bio = excluded.bio, revision = nextval('revision')
       RETURNING revision`,
      [userKey, username, bio]
    )
    const event: ProfileChanged = {
      avatar_url: '',
      chat_profile_url: '',
      display_name_override: null,
      linked_gamertag: '',
      console_verified: false,
      bio,
      social_links: [],
      avatar_hue: null,
      username,
      revision: Number(row?.revision),
      changedAt: '2026-03-14T20:00:00Z'
    }
    await transaction.query('INSERT INTO outbox (topic, people, event) VALUES ($1, $2, $3)', [
      'profile',
      [userKey],
      JSON.stringify(event)
    ])
  })
}

/** Returns the distinct events of the log by user, in the order of their first occurrence. */
async function eventsByUser(writes: Postgres, messages: readonly LogMessage[]): Promise<Map<string, string[]>> {
  const keys = await sealKeys(writes, [...new Set(messages.map(({ key }) => Number(key)))])
  const first = new Map(messages.toReversed().map((message) => [message.headers.ce_id, message]))
  const byUser = new Map<string, string[]>()
  for (const message of messages) {
    if (first.get(message.headers.ce_id) !== message) continue
    const decoded = decodeEvent(profileTopic, { offset: 0, ...message }, (person) => keys.get(person))
    if (!decoded.ok) throw new Error(decoded.reason)
    const { username, bio } = decoded.event
    byUser.set(username, [...(byUser.get(username) ?? []), bio])
  }
  return byUser
}

const byUser = (edits: readonly { user: number }[]): Map<string, string[]> => {
  const expected = new Map<string, string[]>()
  for (const [n, { user }] of edits.entries()) {
    const username = USERS[user] ?? ''
    expected.set(username, [...(expected.get(username) ?? []), `edit ${n}`])
  }
  return expected
}

const needsOn = (writes: WriteTransactions, log: Log): RelayNeeds => ({
  outbox: outboxOf(writes),
  log,
  people: createPeople({ writes: async () => writes, registry: new Registry() }),
  onUnreadable: () => undefined
})

/** Runs rounds until the outbox is empty; some of them die. */
async function relayAll(needs: RelayNeeds): Promise<void> {
  for (;;) {
    const round = await relayOnce(needs, new Set()).catch(() => undefined)
    if (round?.outcome === 'empty') return
  }
}

onEachWriteSide((name, open, options) => {
  // One connection shows these.
  if (name === 'PGlite') {
    test(`${name}: a relay that dies at any point loses nothing and keeps each row's order`, options, async (t) => {
      const { postgres } = open()
      const edits = [0, 1, 0, 2, 0, 1].map((user) => ({ user }))
      const run = async (fate: Fate) => {
        await emptied(open())
        for (const [n, { user }] of edits.entries()) await edit(postgres, USERS[user] ?? '', `edit ${n}`)
        const log = memoryLog()
        await relayOnce(needsOn(fated(postgres, fate), log.on(fate)), new Set()).catch(() => undefined)
        await relayAll(needsOn(postgres, log.on(new Fate())))
        t.same(await eventsByUser(postgres, log.messages), byUser(edits), [...fate.ends].join())
        t.same(await postgres.query('SELECT o.id FROM outbox AS o'), [])
        return log.messages.length
      }
      const whole = new Fate()
      t.equal(await run(whole), edits.length, 'undisturbed: each once')
      for (let at = 0; at < whole.calls; at += 1) {
        for (const end of ['before', 'after'] as const) await run(new Fate(new Map([[at, end]])))
      }
    })

    test(`${name}: waiting for a slow log does not block the write side`, options, async (t) => {
      const { postgres } = open()
      await emptied(open())
      await edit(postgres, 'Ann', 'edit 0')
      const log = memoryLog()
      let isAppending = (): void => undefined
      let release = (): void => undefined
      const appending = new Promise<void>((resolve) => {
        isAppending = resolve
      })
      const going = new Promise<void>((resolve) => {
        release = resolve
      })
      const slow: Log = {
        append: async (topic, messages) => {
          isAppending()
          await going
          await log.on(new Fate()).append(topic, messages)
        }
      }
      const round = relayOnce({ ...needsOn(postgres, slow), heldMsMax: 1 }, new Set())
      await appending
      await edit(postgres, 'Ann', 'edit 1')
      release()
      t.same(await round, { relayed: 1, outcome: 'done' })
      t.match(await postgres.query('SELECT o.event FROM outbox AS o'), [{ event: { bio: 'edit 1' } }])
    })

    test(`${name}: rows without a valid event stay, are reported once, and block no others`, options, async (t) => {
      const { postgres } = open()
      await emptied(open())
      await postgres.query(
        `INSERT INTO outbox (topic, people, event) VALUES ('profile', '{}', '{}'), ('none', '{}', '1')`
      )
      await edit(postgres, 'Ann', 'edit 0')
      const log = memoryLog()
      const logged: string[] = []
      const registry = new Registry()
      const relay = createRelay({
        outbox: async () => outboxOf(postgres),
        log: log.on(new Fate()),
        people: createPeople({ writes: async () => postgres, registry }),
        registry,
        logger: { ...QUIET, error: (details) => void logged.push(JSON.stringify(details)) },
        pollMs: 1
      })
      relay.start()
      while ((await postgres.query('SELECT o.id FROM outbox AS o')).length > 2) await tick()
      await relay.stop()
      t.equal(log.messages.length, 1)
      t.equal(logged.length, 1)
      t.match(logged[0], /does not match its schema.*there is no such topic/)
      t.match(await registry.metrics(), /gamenet_outbox_unreadable_rows 2/)
    })

    test(`${name}: each round says whether it failed`, options, async (t) => {
      const { postgres } = open()
      await emptied(open())
      const registry = new Registry()
      const rounds: unknown[] = []
      const relay = createRelay({
        outbox: async () => {
          if (rounds.length === 0) throw new Error('away')
          return outboxOf(postgres)
        },
        log: memoryLog().on(new Fate()),
        people: createPeople({ writes: async () => postgres, registry }),
        registry,
        logger: QUIET,
        onRound: (error) => void rounds.push(error),
        pollMs: 1
      })
      relay.start()
      while (rounds.length < 2) await tick()
      await relay.stop()
      t.match(rounds.slice(0, 2), [new Error('away'), undefined])
    })

    test(`${name}: changes about an erased person are not published`, options, async (t) => {
      const { postgres } = open()
      await emptied(open())
      await postgres.query(`INSERT INTO erasure_salt (salt) VALUES ('salt')`)
      await postgres.query(
        `INSERT INTO erasure (name_hash, erased_at) SELECT ${nameHashSql('$1::text')}, now() FROM erasure_salt AS s`,
        ['ann']
      )
      await edit(postgres, 'Ann', 'edit 0')
      await edit(postgres, 'Bob', 'edit 1')
      const log = memoryLog()
      const registry = new Registry()
      const people = createPeople({ writes: async () => postgres, registry })
      await relayAll({ ...needsOn(postgres, log.on(new Fate())), people })
      t.same(await eventsByUser(postgres, log.messages), new Map([['Bob', ['edit 1']]]))
      t.match(await registry.metrics(), /gamenet_erased_events_total\{topic="profile"\} 1/)
      t.same(await postgres.query('SELECT p.user_key FROM person AS p'), [{ user_key: 'bob' }])
    })
  }

  test(`${name}: after deaths of several relays at any call, the log has all changes in order`, options, async (t) => {
    const ends = fc.array(fc.tuple(fc.nat(60), fc.constantFrom('before' as const, 'after' as const)), { maxLength: 12 })
    const connections = [open().another(t), open().another(t), open().another(t)]
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ user: fc.nat(USERS.length - 1) }), { maxLength: 30 }),
        fc.array(ends, { minLength: 1, maxLength: 3 }),
        async (edits, fates) => {
          const { postgres } = open()
          await emptied(open())
          const log = memoryLog()
          let isWritten = false
          const relays = fates.map(async (each, n) => {
            const fate = new Fate(new Map(each))
            const needs = needsOn(fated(connections[n] ?? postgres, fate), log.on(fate))
            while (!isWritten) await relayOnce(needs, new Set()).catch(() => undefined)
            await relayAll(needs)
          })
          for (const [n, { user }] of edits.entries()) await edit(postgres, USERS[user] ?? '', `edit ${n}`)
          isWritten = true
          await Promise.all(relays)
          deepEqual(await eventsByUser(postgres, log.messages), byUser(edits))
        }
      ),
      runs(8)
    )
  })

  test(`${name}: several concurrent relays publish nothing twice unless one dies`, options, async (t) => {
    const { postgres } = open()
    await emptied(open())
    const log = memoryLog()
    const registry = () => new Registry()
    const relays = [1, 2, 3].map(() => {
      const writes = open().another(t)
      const people = createPeople({ writes: async () => writes, registry: registry() })
      const fate = new Fate()
      return createRelay({
        outbox: async () => outboxOf(writes),
        log: log.on(fate),
        people,
        registry: registry(),
        logger: QUIET,
        pollMs: 1
      })
    })
    for (const relay of relays) relay.start()
    const edits = Array.from({ length: 200 }, (_, n) => ({ user: n % 3 }))
    // Each user's edits are sequential, different users' concurrent.
    await Promise.all(
      [0, 1, 2].map(async (own) => {
        for (const [n, { user }] of edits.entries()) {
          if (user === own) await edit(postgres, USERS[user] ?? '', `edit ${n}`)
        }
      })
    )
    while ((await postgres.query('SELECT o.id FROM outbox AS o LIMIT 1')).length > 0) await tick()
    await Promise.all(relays.map((relay) => relay.stop()))
    t.equal(log.messages.length, edits.length)
    t.same(await eventsByUser(postgres, log.messages), byUser(edits))
  })

  // An embedded PostgreSQL runs one transaction at a time.
  if (name === 'PostgreSQL') {
    test(`${name}: a relay works while projectors write, rebuilds fill and people are created`, options, async (t) => {
      const { postgres } = open()
      await emptied(open())
      await edit(postgres, 'Ann', 'edit 0')
      const log = memoryLog()
      await open()
        .another(t)
        .transaction(async (transaction) => {
          for (const lock of [PASSES_LOCK, FILLS_LOCK, PEOPLE_LOCK]) {
            await transaction.query('SELECT pg_advisory_xact_lock_shared($1)', [lock])
          }
          const round = await relayOnce(needsOn(postgres, log.on(new Fate())), new Set())
          t.same(round, { relayed: 1, outcome: 'done' })
        })
    })
  }
})
