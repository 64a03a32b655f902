import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openPostgres } from '@gamenet/engines'
import { until } from '@gamenet/engines/testing'
import { test } from 'tap'
import { z } from 'zod'
import { Status } from '../src/operate/status/operation.js'
import { gamenet, gamenetJson, plainWrites } from './service/gamenet.js'
import { Caller, type SignedIn, signIn, startAuth, startPeopleService } from './service/people-service.js'

const Ledger = z.array(z.object({ nameHash: z.string(), erasedAt: z.string(), doneAt: z.string().nullable() }))

test('an operator erases a user while the service runs; after kills, the next start completes the erasure', async (t) => {
  const folder = t.testdir({})
  const writes = await plainWrites(t)
  const environment = { DATA_DIR: join(folder, 'data'), ...writes }
  const auth = await startAuth(t)
  const [ann, ben] = auth.people.map(({ username }) => username)
  const [first, second] = await Promise.all(auth.people.slice(0, 2).map((person) => signIn(auth, person)))
  const killed = await startPeopleService(environment.DATA_DIR, auth, writes)
  t.teardown(() => killed.kill())
  let caller = new Caller(killed, 4)
  const path = (username: string | undefined) => `/api/profile/${username}`
  const averageOfBen = async () =>
    z
      .object({ average: z.number(), ratingCount: z.int() })
      .parse((await caller.ask('GET', `${path(ben)}/reputation`)).body)
  const rate = (rater: SignedIn | undefined, user: string | undefined, stars: number) =>
    caller.ask('POST', `${path(user)}/reputation`, rater, { stars, comment: 'good' })
  const sightings = async (name: string) => {
    const file = join(folder, name)
    const rows = Array.from({ length: 30 }, (_, minute) =>
      JSON.stringify({
        username: ann,
        gamertag: 'Quagga',
        state: 'online',
        game: 'Chess',
        observedAt: `2026-03-14T20:${String(minute).padStart(2, '0')}:00Z`
      })
    )
    await writeFile(file, `${rows.join('\n')}\n${name}\n`)
    return await gamenet(environment, ['import', 'presence', file, '--json'])
  }
  await sightings('before.ndjson')
  for (const [user, session] of [
    [ann, first],
    [ben, second]
  ] as const) {
    t.match(await caller.ask('PATCH', path(user), session, { bio: 'hello' }), { status: 200 })
  }
  t.match(await rate(first, ben, 1), { status: 200 })
  t.match(await rate(second, ann, 5), { status: 200 })
  await gamenetJson(environment, ['status', '--wait', '120'])
  t.match(await caller.ask('GET', path(ann)), { status: 200, body: { playTime: { totalMinutes: 29 } } })
  t.match(await averageOfBen(), { average: 4.64, ratingCount: 1 })

  const erasing = gamenet(environment, ['erase', ann?.toUpperCase() ?? ''])
  await until(async () => Ledger.parse(await gamenetJson(environment, ['erase', '--list'])).length > 0)
  await killed.kill()
  await caller.close()
  t.match(await erasing, { code: 1, stderr: /is recorded and not complete; a running service completes it/ })
  const { POSTGRES_URL: url } = writes
  if (url === undefined) t.comment('NOT TESTED: a kill while rows are deleted; PostgreSQL is not installed.')
  else {
    await whileLocked(url, async (isWaitedFor) => {
      const deleting = await startPeopleService(environment.DATA_DIR, auth, writes)
      t.teardown(() => deleting.kill())
      await until(isWaitedFor)
      await deleting.kill()
    })
    t.match(
      await gamenet(environment, ['verify']),
      { code: 0, stdout: /^Nothing is damaged/m },
      'nothing counts as lost'
    )
  }
  const service = await startPeopleService(environment.DATA_DIR, auth, writes)
  t.teardown(() => service.kill())
  caller = new Caller(service, 4)
  t.teardown(() => caller.close())
  t.same(Status.parse(await gamenetJson(environment, ['status'])).damage, [])
  const isDone = async () =>
    Ledger.parse(await gamenetJson(environment, ['erase', '--list'])).every(({ doneAt }) => doneAt !== null)
  await until(isDone, 250)
  t.match(await gamenet(environment, ['verify']), { code: 0, stdout: /^Nothing is damaged/m })
  t.match(await caller.ask('GET', path(ann)), { status: 404 })
  t.match(await averageOfBen(), { average: 5, ratingCount: 0 })

  t.match(await sightings('again.ndjson'), { stdout: /"published":0/ })
  t.match(await caller.ask('GET', `${path(ben)}/reputation`, first), { status: 200, body: { viewer: null } })
  t.match(await caller.ask('GET', path(ann)), { status: 404 }, 'being here does not make anybody known again')
  t.match(await gamenet(environment, ['erase', 'ana']), { code: 1, stdout: /nothing was changed/ })
  t.match(await gamenet(environment, ['erase', 'ana', '--anyway']), {
    code: 0,
    stdout: /^Nothing was stored about this user/
  })
  t.match(await rate(first, ben, 3), { status: 200 }, 'a user who returns is a new user')
  t.match(await caller.ask('GET', path(ann)), { status: 200, body: { playTime: { totalMinutes: 0 } } })
  t.match(await gamenet(environment, ['erase', 'a\u200bb']), { code: 2, stderr: /not a username/ })
  t.match(await gamenet(environment, ['erase']), { code: 2 })
  await service.stop()
  t.notMatch(service.stderr(), /missing|unreadable|lost/)

  await t.test('the same on a stopped service', async (t) => {
    const report = await gamenetJson(environment, ['erase', ben ?? ''])
    t.match(report, { wasKnown: true })
    t.ok(await isDone())
  })
})

/**
 * Runs work while erasures are not recorded as complete: PostgreSQL does not vacuum a table with this lock. `isWaitedFor` returns
 * whether an erasure waits for it; then it has deleted all rows.
 */
async function whileLocked(url: string, work: (isWaitedFor: () => Promise<boolean>) => Promise<void>): Promise<void> {
  const postgres = openPostgres({ url })
  try {
    await postgres.transaction(async (transaction) => {
      await transaction.query('LOCK TABLE profile IN SHARE UPDATE EXCLUSIVE MODE')
      const waiting = `SELECT l.pid FROM pg_locks AS l WHERE l.relation = 'profile'::regclass AND NOT l.granted`
      await work(async () => (await transaction.query(waiting)).length > 0)
    })
  } finally {
    await postgres.close()
  }
}
