import { averageOf } from '@gamenet/schemas'
import type { Test } from 'tap'
import { z } from 'zod'
import { forEach, sameList } from './ask.js'
import { gamenetJson } from './gamenet.js'
import { Caller, signIn, startAuth, startPeopleService, storedRatings } from './people-service.js'

type Given = { readonly stars: number; readonly comment: string }

const Reputation = z.object({
  average: z.number(),
  ratingCount: z.int(),
  viewer: z.object({ stars: z.int(), comment: z.string().nullable() }).nullable()
})
const Edited = z.object({ bio: z.string(), avatar_hue: z.int().nullable() })

/**
 * Clients rate, edit and read at once while `shouldContinue`: no update is lost, and no client gets another's answer.
 */
export async function provesPeopleAtOnce(
  t: Test,
  clients: number,
  shouldContinue: (step: number) => boolean
): Promise<void> {
  const folder = t.testdir({})
  const auth = await startAuth(t)
  const service = await startPeopleService(folder, auth)
  t.teardown(() => service.kill())
  const caller = new Caller(service, clients)
  t.teardown(() => caller.close())
  const users = await Promise.all(auth.people.slice(0, clients).map((person) => signIn(auth, person)))
  const bios = new Map<string, string>()
  const given = new Map(users.map(({ person }) => [person.username, new Map<string, Given>()]))
  const wrong: unknown[] = []
  const requests = { PATCH: 0, POST: 0, GET: 0 }
  const ask: Caller['ask'] = async (method, path, who, body) => {
    const answer = await caller.ask(method, path, who, body)
    requests[method] += 1
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
  const begun = performance.now()
  await Promise.all(
    users.map(async (me, number) => {
      for (let step = 1; shouldContinue(step) && wrong.length < 5; step += 1) {
        const other = users[(number + 1 + ((step * 7) % (clients - 1))) % clients]?.person.username ?? ''
        if (step % 4 === 0) await edit(me, step)
        else if (step % 4 === 1) await rate(me, other, step)
        else await read(me, other)
      }
    })
  )
  t.same(wrong.slice(0, 5), [])
  t.comment(`${JSON.stringify(requests)} in ${Math.round(performance.now() - begun)} ms`)
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
}
