import { setTimeout as pause } from 'node:timers/promises'
import {
  type AchievementUnlocked,
  achievementUnlockTopic,
  networkCountTopic,
  type PresenceSeen,
  presenceTopic,
  ratingTopic
} from '@gamenet/schemas'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { readNewestWrites, storeOver } from '../src/index.js'
import { peopleOf, SEAL_KEY_CACHE_MS, SealKeyCache } from '../src/load/seal-key-cache.js'
import { MemoryLog } from './memory-log.js'
import { sealKeys, sealOf } from './people.js'
import { emptyTables, message, openTables, projectorOn } from './pipeline.js'

const T0 = '2026-03-14T20:00:00Z'
const seen = (username: string, second = 0): PresenceSeen => ({
  username,
  gamertag: `tag of ${username}`,
  state: 'online',
  game: 'Halo 2',
  periodSeconds: 60,
  observedAt: `2026-03-14T20:00:${10 + second}Z`
})
const rated = (username: string, raterUsername: string, revision: number) =>
  message(ratingTopic, { username, raterUsername, stars: 4, comment: 'quick and kind', revision, ratedAt: T0 })
/** Seal keys of all people except these. */
const without = (usernames: readonly string[]) => async (people: readonly number[]) => {
  const gone = new Set(usernames.map((username) => sealOf(username).id))
  return sealKeys(people.filter((person) => !gone.has(person)))
}

test('the loader', async (t) => {
  const engine = await openTables()
  const { control } = engine
  t.beforeEach(() => emptyTables(control))

  await t.test(
    'decrypts sealed events, skips erased ones, and stores those that it cannot decrypt as dead letters',
    async (t) => {
      const log = new MemoryLog(() => 3)
      const good = message(presenceTopic, seen('Ann'))
      const { headers } = good
      const [start = '', end = ''] = good.value.split('"sealed":"1.')
      const ofBob = message(presenceTopic, seen('Bob', 1))
      log.append('presence', [
        good,
        message(presenceTopic, seen('Gone')),
        { key: '1', headers, value: `${start}"sealed":"1.${end.startsWith('A') ? 'B' : 'A'}${end.slice(1)}` },
        { key: '1', headers, value: `${start.replace(/\d+/, String(sealOf('Bob').id))}"sealed":"1.${end}` },
        { key: '1', headers, value: JSON.stringify(seen('Ann')) },
        { ...ofBob, value: Buffer.from(ofBob.value) },
        message(presenceTopic, seen('Gone', 2)),
        { ...ofBob, headers }
      ])
      const unlock: AchievementUnlocked = { username: 'Gone', achievementId: 1, points: 5, unlockedAt: T0 }
      log.append('achievement-unlock', [message(achievementUnlockTopic, unlock)])
      log.append('rating', [
        rated('Ann', 'Bob', 1),
        rated('Ann', 'Gone', 2),
        rated('Gone', 'Bob', 3),
        rated('Bob', 'Ann', 4)
      ])

      const registry = new Registry()
      const projector = projectorOn(engine, log, { registry, sealKeys: without(['Gone']) })
      projector.start()
      await projector.caughtUp()
      const { topics } = await projector.status()
      await projector.stop()
      t.match(
        await control.rows('SELECT e.username, e.gamertag_key FROM event_presence AS e FINAL ORDER BY e.offset'),
        [
          { username: 'Ann', gamertag_key: 'tag of ann' },
          { username: 'Bob', gamertag_key: 'tag of bob' }
        ]
      )
      t.match(await control.rows('SELECT e.user_key, e.rater_key FROM event_rating AS e FINAL ORDER BY e.offset'), [
        { user_key: 'ann', rater_key: 'bob' },
        { user_key: 'bob', rater_key: 'ann' }
      ])
      t.same(await control.rows('SELECT e.user_key FROM event_achievement_unlock AS e FINAL'), [])
      const deadLetters = await control.rows('SELECT p.offset, p.reason FROM dead_letter AS p FINAL ORDER BY p.offset')
      t.match(deadLetters, [
        { offset: '2', reason: /cannot be decrypted/ },
        { offset: '3', reason: /cannot be decrypted/ },
        { offset: '4', reason: /is not sealed/ },
        { offset: '7', reason: /cannot be decrypted/ }
      ])
      const opened = Math.max(sealOf('Ann').id, sealOf('Bob').id)
      t.match(await storeOver(control).do(readNewestWrites), { person: opened }, 'a person above these is new')
      for (const { topic, lag } of topics) t.equal(lag === null || lag === 0, true, topic)
      const metrics = await registry.metrics()
      t.match(metrics, /gamenet_passed_over_events_total\{topic="presence"\} 2/)
      t.match(metrics, /gamenet_passed_over_events_total\{topic="rating"\} 2/)
      t.match(metrics, /gamenet_passed_over_events_total\{topic="achievement-unlock"\} 1/)
      t.match(metrics, /gamenet_dead_letters\{topic="presence"\} 4/)
    }
  )

  await t.test('waits while keys are unavailable, and loads everything else meanwhile', async (t) => {
    const log = new MemoryLog()
    log.append('presence', [message(presenceTopic, seen('Ann'))])
    log.append('network-count', [message(networkCountTopic, { observedAt: T0, online: 5 })])
    let isAway = true
    const projector = projectorOn(engine, log, {
      sealKeys: async (people) => {
        if (isAway) throw new Error('the database is away')
        return sealKeys(people)
      }
    })
    projector.start()
    await projector.caughtUp({ targets: [{ topic: 'network-count', epoch: 0, partition: 0, next: 1 }] })
    t.match(await control.rows('SELECT e.online FROM event_network_count AS e'), [{ online: 5 }])
    t.same(await control.rows('SELECT e.username FROM event_presence AS e'), [])
    isAway = false
    await projector.caughtUp()
    t.match(await control.rows('SELECT e.username FROM event_presence AS e'), [{ username: 'Ann' }])
    await projector.stop()
  })

  await t.test('waits for people that PostgreSQL neither knows nor has erased, until they are given up', async (t) => {
    const log = new MemoryLog()
    log.append('presence', [message(presenceTopic, seen('Ann')), message(presenceTopic, seen('Bob', 1))])
    let areKeysLost = false
    const projector = projectorOn(engine, log, {
      sealKeys: without(['Ann']),
      erasedPeople: async () => new Set(),
      areKeysLost: async () => areKeysLost
    })
    projector.start()
    let trouble: string | null = null
    while (trouble === null) {
      await pause(10)
      trouble = (await projector.status()).loaderTrouble
    }
    t.match(trouble, /neither the key nor the erasure of person/)
    t.same(await control.rows('SELECT e.username FROM event_presence AS e'), [])
    areKeysLost = true
    await projector.caughtUp()
    t.match(await control.rows('SELECT e.username FROM event_presence AS e'), [{ username: 'Bob' }])
    await projector.stop()
  })

  await t.test('can be stopped while keys are unavailable', async () => {
    const log = new MemoryLog()
    log.append('presence', [message(presenceTopic, seen('Ann'))])
    let isAsked = (): void => undefined
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve
    })
    const projector = projectorOn(engine, log, {
      sealKeys: async () => {
        isAsked()
        throw new Error('the database is away')
      }
    })
    projector.start()
    await asked
    await projector.stop()
  })
})

test('keys are requested once, and again after their lifetime', async (t) => {
  const clock = { ms: 5 }
  const asked: number[][] = []
  let answering = async () => {}
  const kept = new SealKeyCache(
    async (_topic, people) => {
      asked.push([...people])
      await answering()
      return without(['Gone'])(people)
    },
    () => clock.ms
  )
  const [ann, bob, gone] = ['Ann', 'Bob', 'Gone'].map((username) => sealOf(username).id)
  const people = (...usernames: string[]) =>
    peopleOf(usernames.map((username, offset) => ({ offset, ...message(presenceTopic, seen(username)) })))
  t.same([...(await kept.of('presence', people('Ann', 'Gone', 'Ann')))], [[ann, sealOf('Ann').key]])
  clock.ms = 100
  answering = async () => {
    clock.ms += 3000
  }
  await kept.of('presence', people('Gone', 'Bob', 'Ann'))
  t.same(asked, [[ann, gone], [bob]])
  clock.ms = 5 + SEAL_KEY_CACHE_MS + 1
  answering = async () => {}
  await kept.of('presence', people('Ann', 'Bob', 'Gone'))
  t.same(asked.slice(2), [[ann, gone]])
  clock.ms = 100 + SEAL_KEY_CACHE_MS + 1
  await kept.of('presence', people('Bob'))
  t.same(asked.slice(3), [[bob]], 'his time began when he was asked for, not when the answer came')
})
