import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openPostgres } from '@gamenet/engines'
import { postgresPrograms, startPostgres, until } from '@gamenet/engines/testing'
import type { OwnTopics } from '@gamenet/projector'
import { type Test, test } from 'tap'
import { dividedPasses, postgresLocks } from '../src/stores/divided-passes.js'

const programs = postgresPrograms()
const NO_POSTGRES = 'PostgreSQL is not here: /usr/lib/postgresql (Debian package postgresql)'
const skip = programs === undefined && process.env.CI !== 'true' ? NO_POSTGRES : false
const TOPICS = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
const none = () => 0
const PARTS = { program: 7, topics: TOPICS }
const PROJECTOR = fileURLToPath(new URL('service/divided-projector.js', import.meta.url))

test('projectors divide topics by locks in PostgreSQL', { skip }, async (t) => {
  if (programs === undefined) throw new Error(NO_POSTGRES)
  const server = await startPostgres(programs)
  t.teardown(() => server.stop())
  /** A projector of this process; `own` runs a pass and returns its topics. */
  const projector = (
    t: Test,
    {
      parts = PARTS,
      restMs = 15_000,
      renewMs = 5000,
      number
    }: Partial<Record<'restMs' | 'renewMs' | 'number', number>> & {
      parts?: typeof PARTS
    } = {}
  ) => {
    const postgres = openPostgres({ url: server.url })
    const division = dividedPasses(
      postgresLocks(async () => postgres, { restMs, renewMs }),
      number
    )(parts)
    t.teardown(async () => {
      await division.end()
      await postgres.close()
    })
    const own = (events: (topic: string) => number = none) =>
      division.run(events, async ({ has }) => TOPICS.filter(has).join(''))
    return { ...division, own }
  }

  await t.test('each topic has one projector, and none more than its share', async (t) => {
    const one = projector(t, { number: 1001 })
    t.equal(await one.own(), 'abcdefg', 'one has all')
    const two = projector(t, { number: 1002 })
    t.equal(await two.own(), '', 'what another has is not taken from it')
    t.equal(await one.own(), 'ade', 'it leaves what is the share of another')
    t.equal(await two.own(), 'bcfg')
    t.equal(await one.own(), 'ade', 'and keeps the rest')
    const three = projector(t, { number: 1003 })
    for (const each of [three, two, one, three, two, one]) await each.own()
    t.same([await one.own(), await two.own(), await three.own()], ['afg', 'be', 'cd'])
    await two.end()
    for (const each of [one, three]) await each.own()
    t.same([await one.own(), await three.own()].join('').length, TOPICS.length)
    const events = (topic: string) => ['a', 'd'].indexOf(topic) + 1
    for (const each of [one, three, one, three]) await each.own(events)
    const [first] = [await one.own(events), await three.own(events)].map((own) => own.match(/[ad]/g)?.length)
    t.equal(first, 1, 'topics with many events are divided first')
    const other = projector(t, { parts: { ...PARTS, program: 8 } })
    t.equal(await other.own(), 'abcdefg', 'a program with other statements divides separately')
  })
  await t.test('a projector whose pass fails leaves its topics to the others', async (t) => {
    const [one, two] = [projector(t, { number: 1001 }), projector(t, { number: 1002 })]
    await one.own()
    await two.own()
    await t.rejects(
      one.run(none, async () => Promise.reject(new Error('no tables'))),
      /no tables/
    )
    t.equal(await two.own(), 'abcdefg')
  })
  await t.test(
    'a pass whose transaction has rested too long is stopped by its check, and another begins',
    async (t) => {
      const one = projector(t, { restMs: 300, renewMs: 3_600_000, number: 1001 })
      const two = projector(t, { number: 1002 })
      let written = 0
      const pass = one.run(none, async (own) => {
        await until(async () => (await two.own()) === 'abcdefg')
        await own.check()
        written += 1
      })
      await t.rejects(pass, { code: 'engine_away' })
      t.equal(written, 0)
      t.equal(await one.own(), '', 'it waits until its share is free')
      await two.own()
      t.equal(await one.own(), 'ade')
    }
  )
  await t.test('signs of life keep topics during a long pass', async (t) => {
    const one = projector(t, { restMs: 500, renewMs: 50 })
    const two = projector(t)
    await one.run(none, async (own) => {
      for (let n = 0; n < 100; n += 1) {
        await pause(20)
        t.equal(await two.own(), '')
      }
      await own.check()
    })
  })
  await t.test('a process that is killed, or stopped and continued', async (t) => {
    // Their clocks are a minute apart: only the server measures time.
    const [one, two] = [startProcess(t, server.url, 0), startProcess(t, server.url, 60_000)]
    await until(() => one.topics() + two.topics() === TOPICS.length && one.topics() > 0 && two.topics() > 0)
    one.child.kill('SIGSTOP')
    await until(() => two.topics() === TOPICS.length)
    t.not(one.said.at(-1), 'stopped', 'a stopped process knows nothing')
    one.child.kill('SIGCONT')
    await until(() => one.said.includes('stopped') || one.said.at(-1) === '')
    await until(() => one.topics() > 0 && one.topics() + two.topics() === TOPICS.length)
    two.child.kill('SIGKILL')
    await until(() => one.topics() === TOPICS.length)
    t.same(one.said.at(-1)?.split(' '), TOPICS)
  })
  await t.test('while PostgreSQL is away each runs all passes, and they divide them again', async (t) => {
    const [one, two] = [projector(t), projector(t)]
    const shares = async () => [await one.own(), await two.own()].map(({ length }) => length).sort()
    await shares()
    await until(async () => `${await shares()}` === '3,4')
    const lost = one.run(none, async (own: OwnTopics) => {
      await server.kill()
      await own.check()
    })
    await t.rejects(lost, { code: 'engine_away' })
    t.same(await shares(), [TOPICS.length, TOPICS.length])
    await server.start()
    await until(async () => `${await shares()}` === '3,4')
  })
})

/** Starts a process that divides topics, whose clock is ahead by `aheadMs`. */
function startProcess(
  t: Test,
  url: string,
  aheadMs: number
): { child: ChildProcess; said: string[]; topics(): number } {
  const options = JSON.stringify({ ...PARTS, restMs: 1000, renewMs: 200 })
  const clock = `const now = Date.now; Date.now = () => now() + ${aheadMs}`
  const preload = `data:text/javascript,${encodeURIComponent(clock)}`
  const child = spawn(process.execPath, ['--import', preload, PROJECTOR, url, options], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  t.teardown(() => child.kill('SIGKILL'))
  const said: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => said.push(line))
  const topics = () => (said.at(-1) ?? '').split(' ').filter((name) => TOPICS.includes(name)).length
  return { child, said, topics }
}
