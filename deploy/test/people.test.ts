import { setTimeout as wait } from 'node:timers/promises'
import { averageOf } from '@gamenet/schemas'
import { test } from 'tap'
import { z } from 'zod'
import { forEach, sameList } from './service/ask.js'
import { gamenetJson } from './service/gamenet.js'
import { Caller, signIn, startAuth, startPeopleService, storedRatings } from './service/people-service.js'

/*
 * PEOPLE_SECONDS and PEOPLE_KILLS lengthen what stands here for a minute of many clients and a hundred kills.
 */
const SECONDS = Number(process.env.PEOPLE_SECONDS ?? 5)
const KILLS = Number(process.env.PEOPLE_KILLS ?? 3)
const CLIENTS = 200
const WRITERS = 12

type Given = { readonly stars: number; readonly comment: string }

const Reputation = z.object({
  average: z.number(),
  ratingCount: z.int(),
  viewer: z.object({ stars: z.int(), comment: z.string().nullable() }).nullable()
})
const Edited = z.object({ bio: z.string(), avatar_hue: z.int().nullable() })

test('200 clients rate, edit and read at once: no update is lost, nobody sees another’s answer', async (t) => {
  const folder = t.testdir({})
  const auth = await startAuth(t)
  const service = await startPeopleService(folder, auth)
  t.teardown(() => service.kill())
  const caller = new Caller(service, CLIENTS)
  t.teardown(() => caller.close())
  const users = await Promise.all(auth.people.slice(0, CLIENTS).map((person) => signIn(auth, person)))
  const bios = new Map<string, string>()
  const given = new Map(users.map(({ person }) => [person.username, new Map<string, Given>()]))
  const wrong: unknown[] = []
  const asked = { PATCH: 0, POST: 0, GET: 0 }
  const ask: Caller['ask'] = async (method, path, who, body) => {
    const answer = await caller.ask(method, path, who, body)
    asked[method] += 1
    if (answer.status !== 200) wrong.push({ method, path, ...answer })
    return answer
  }
  const edit = async (me: (typeof users)[number], step: number) => {
    const { username } = me.person
    const sent = { bio: `${username} ${step}`, avatar_hue: step % 360 }
    const edited = Edited.safeParse((await ask('PATCH', `/api/profile/${username}`, me, sent)).body).data
    if (edited?.bio !== sent.bio || edited.avatar_hue !== sent.avatar_hue) wrong.push({ sent, edited })
    bios.set(username, sent.bio)
    const { body } = await ask('GET', `/api/profile/${username}`)
    const seen = z.object({ profile: Edited.pick({ bio: true }) }).safeParse(body).data
    if (seen?.profile.bio !== sent.bio) wrong.push({ sent, seen })
  }
  const rate = async (me: (typeof users)[number], other: string, step: number) => {
    const rating = { stars: 1 + (step % 5), comment: `${me.person.username} to ${other}, ${step}` }
    const { body } = await ask('POST', `/api/profile/${other}/reputation`, me, rating)
    const answer = z.object({ viewer: z.object({ stars: z.int(), comment: z.string() }) }).safeParse(body).data
    if (answer?.viewer.comment !== rating.comment) wrong.push({ rating, body })
    given.get(me.person.username)?.set(other, rating)
  }
  const read = async (me: (typeof users)[number], other: string) => {
    const { body } = await ask('GET', `/api/profile/${other}/reputation`, me)
    const mine = given.get(me.person.username)?.get(other)
    const { viewer } = Reputation.parse(body)
    if (viewer?.comment !== mine?.comment || viewer?.stars !== mine?.stars) wrong.push({ other, mine, viewer })
  }
  await Promise.all(users.map((me) => edit(me, 0)))
  const until = performance.now() + SECONDS * 1000
  await Promise.all(
    users.map(async (me, number) => {
      for (let step = 1; performance.now() < until && wrong.length < 5; step += 1) {
        const other = users[(number + 1 + ((step * 7) % (CLIENTS - 1))) % CLIENTS]?.person.username ?? ''
        if (step % 4 === 0) await edit(me, step)
        else if (step % 4 === 1) await rate(me, other, step)
        else await read(me, other)
      }
    })
  )
  t.same(wrong.slice(0, 5), [])
  t.comment(`${JSON.stringify(asked)} in ${SECONDS} s`)
  await forEach(users, 16, async ({ person }) => {
    const { body } = await ask('GET', `/api/profile/${person.username}/reputation`)
    const { average, ratingCount } = Reputation.parse(body)
    const stars = users.flatMap((rater) => given.get(rater.person.username)?.get(person.username)?.stars ?? [])
    const sum = stars.reduce((all, each) => all + each, 0)
    if (ratingCount !== stars.length || average !== averageOf(sum, stars.length)) wrong.push({ person, body, stars })
    const profile = await ask('GET', `/api/profile/${person.username}`)
    const { bio } = z.object({ profile: Edited.pick({ bio: true }) }).parse(profile.body).profile
    if (bio !== bios.get(person.username)) wrong.push({ bio, wanted: bios.get(person.username) })
  })
  t.same(wrong.slice(0, 5), [], 'what was written last is what is there')
  await gamenetJson({ DATA_DIR: folder }, ['status', '--wait', '120'])
  t.equal(await service.stop(), 0)
  const keys = users.map(({ sessionKey }) => sessionKey)
  t.notOk(
    keys.some((key) => service.stderr().includes(key)),
    'no session key is in the log'
  )
  const { writes, tables, outbox } = await storedRatings(folder)
  t.equal(outbox, 0)
  t.ok(writes.length > 0)
  sameList(t, tables, writes, 'ClickHouse has the ratings that PostgreSQL has')
})

test('ratings that were acknowledged survive any kill, and ClickHouse comes to have them', async (t) => {
  const folder = t.testdir({})
  const auth = await startAuth(t)
  const users = await Promise.all(auth.people.slice(0, WRITERS).map((person) => signIn(auth, person)))
  /** What may stand in the end: the last rating that was acknowledged, and what was sent after it. */
  const possible = new Map<string, string[]>()
  let step = 0
  let acknowledged = 0
  for (let kill = 0; kill <= KILLS; kill += 1) {
    const service = await startPeopleService(folder, auth)
    t.teardown(() => service.kill())
    const caller = new Caller(service, WRITERS)
    const isLast = kill === KILLS
    let isGone = false
    const write = async (me: (typeof users)[number]) => {
      const edited = await caller.ask('PATCH', `/api/profile/${me.person.username}`, me, { avatar_hue: kill })
      if (edited.status !== 200) throw new Error(JSON.stringify(edited))
      for (let round = 0; !isGone && (!isLast || round < WRITERS); round += 1) {
        const other = users[(users.indexOf(me) + 1 + (round % (WRITERS - 1))) % WRITERS]?.person.username ?? ''
        step += 1
        const comment = `number ${step}`
        const pair = `${other} ${me.person.username}`
        possible.set(pair, [...(possible.get(pair) ?? []), comment])
        const path = `/api/profile/${other}/reputation`
        const { status } = await caller.ask('POST', path, me, { stars: 1 + (step % 5), comment })
        if (status === 200) possible.set(pair, [comment])
        else if (status !== 404) throw new Error(`${path} answered ${status}`)
        if (status === 200) acknowledged += 1
      }
    }
    const writing = Promise.allSettled(users.map(write))
    if (isLast) {
      const failed = (await writing).filter(({ status }) => status === 'rejected')
      t.same(failed, [])
      await gamenetJson({ DATA_DIR: folder }, ['status', '--wait', '120'])
      t.equal(await service.stop(), 0)
    } else {
      await wait(Math.random() * 1500)
      await service.kill()
      isGone = true
      await writing
    }
    await caller.close()
  }
  const { writes, tables, outbox } = await storedRatings(folder)
  t.comment(`${acknowledged} ratings acknowledged, ${KILLS} kills, ${writes.length} pairs`)
  t.equal(outbox, 0)
  sameList(t, tables, writes, 'ClickHouse has the ratings that PostgreSQL has')
  const lost = writes.filter(
    ({ userKey, raterKey, comment }) => possible.get(`${userKey} ${raterKey}`)?.includes(comment ?? '') !== true
  )
  t.same(lost, [], 'of each pair the last that was acknowledged, or one sent after it')
  t.equal(writes.length, WRITERS * (WRITERS - 1))
})
