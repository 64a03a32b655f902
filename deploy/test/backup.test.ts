import { mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { nameKey } from '@gamenet/schemas'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { z } from 'zod'
import { restore } from '../src/backup/restore.js'
import { type Environment, gamenet, gamenetJson } from './service/gamenet.js'
import {
  Caller,
  type SignedIn,
  signIn,
  startAuth,
  startPeopleService,
  storedRatings
} from './service/people-service.js'
import { startUpstream } from './service/upstream.js'

const HALO = '4d530064'
const BOARD = 3
const RATED_AT_MOST = 100
/** What pages show once; nothing of it is from before the scrapes of this test. */
const titles = [
  { titleId: HALO, name: 'Halo 2', subtitle: '', online: 41, lobbies: { players: 12, sessions: 2 }, hasBoards: true },
  { titleId: '55530036', name: '187 Ride', subtitle: '', online: 5, lobbies: null }
]

test('a backup of a service at work holds all that was acknowledged, and answers alike elsewhere', async (t) => {
  const folder = t.testdir({})
  const part = (name: string) => join(folder, name)
  const auth = await startAuth(t)
  const people = auth.people.slice(0, 6)
  const names = people.map(({ username }) => username)
  const sessions = await Promise.all(people.map((person) => signIn(auth, person)))
  const upstream = await startPages(t, names)
  const environment = { DATA_DIR: part('data') }
  const start = (name: string) => startPeopleService(part(name), auth, { UPSTREAM_URL: upstream.url })
  const service = await start('data')
  t.teardown(() => service.kill())
  const caller = new Caller(service, 8)
  t.teardown(() => caller.close())
  await gamenetJson(environment, ['scrape', 'all'])
  await writeFile(part('counts.csv'), countsOfYears())
  await gamenetJson(environment, ['import', 'network-count', part('counts.csv')])

  const acknowledged = new Set<string>()
  const rating = rateUntil({ caller, sessions, names, acknowledged })
  while (acknowledged.size < 4) await rating.next()
  const before = new Set(acknowledged)
  const [busy] = await Promise.all([gamenetJson(environment, ['backup', part('busy')]), rating.end()])
  t.match(busy, { directory: part('busy'), files: Number, bytes: Number })

  const answers = await restingAnswers(environment, caller, names)
  await gamenetJson(environment, ['backup', part('quiet')])
  t.ok(answers.size > 30, `${answers.size} answers`)
  t.same(await readdir(join(part('data'), 'tables', 'shadow')).catch(() => []), [], 'nothing stays frozen')

  await t.test('elsewhere, all answers are equal', async (t) => {
    await gamenetJson({ DATA_DIR: part('elsewhere') }, ['restore', part('quiet')])
    const restored = await start('elsewhere')
    t.teardown(() => restored.kill())
    const asked = new Caller(restored, 8)
    t.teardown(() => asked.close())
    const found = await restingAnswers({ DATA_DIR: part('elsewhere') }, asked, names)
    for (const [path, body] of answers) t.same(found.get(path), body, path)
  })

  await t.test('what was acknowledged before a busy one began is in it, in PostgreSQL and in ClickHouse', async (t) => {
    await gamenetJson({ DATA_DIR: part('from-busy') }, ['restore', part('busy')])
    // What the copy's outbox has goes to the log first.
    for (let outbox = -1; outbox !== 0; outbox = (await storedRatings(part('from-busy'))).outbox) {
      t.equal(await (await start('from-busy')).stop(), 0)
    }
    await gamenetJson({ DATA_DIR: part('from-busy') }, ['status', '--wait', '120'])
    const { writes, tables } = await storedRatings(part('from-busy'))
    t.same(tables, writes)
    const kept = new Set(writes.map(({ userKey, raterKey }) => `${userKey}/${raterKey}`))
    t.same(
      [...before].filter((pair) => !kept.has(pair)),
      []
    )
  })

  await t.test('who was forgotten since does not come back with it; who came back since stays', async (t) => {
    const [ann, ben] = [names[0] ?? '', names[1] ?? '']
    await gamenetJson(environment, ['forget', ann])
    t.equal(await service.stop(), 0)
    t.match(await gamenetJson({ DATA_DIR: part('later') }, ['restore', part('quiet'), '--ledger', part('data')]), {
      toForget: 1
    })
    let restored = await start('later')
    t.teardown(() => restored.kill())
    let asked = new Caller(restored, 8)
    t.teardown(() => asked.close())
    t.match(await asked.ask('GET', `/api/profile/${ann}`), { status: 404 }, 'from the first answer on')
    t.match(await asked.ask('GET', `/api/profile/${ben}`), { status: 200 })
    const again = await asked.ask('POST', `/api/profile/${ben}/reputation`, sessions[0], { stars: 2, comment: 'back' })
    t.match(again, { status: 200 })
    await restored.kill()
    restored = await start('later')
    asked = new Caller(restored, 8)
    t.match(await asked.ask('GET', `/api/profile/${ann}`), { status: 200 }, 'as somebody new')
    const { body } = await asked.ask('GET', `/api/profile/${ben}/reputation?feedbackLimit=30`)
    t.match(body, { feedback: [{ raterUsername: ann, stars: 2 }] })
    t.equal(await restored.stop(), 0)
  })

  await t.test('what cannot be restored is refused with a sentence, and nothing is left behind', (t) =>
    provesRefusals(t, part)
  )
})

async function provesRefusals(t: Test, part: (name: string) => string) {
  const backup = part('quiet')
  const attempt = (ledger?: string) =>
    restore({
      backup,
      dataDirectory: part('refused'),
      ledger,
      onProgress: () => undefined,
      signal: new AbortController().signal
    })
  const file = join(backup, 'backup.json')
  const text = await readFile(file, 'utf8')
  const said = z.looseObject({}).parse(JSON.parse(text))
  const saying = async (changed: object, reason: RegExp) => {
    await writeFile(file, JSON.stringify({ ...said, ...changed }))
    await t.rejects(attempt(), reason)
    await writeFile(file, text)
  }
  await saying({ format: 2 }, /format 2.*reads formats up to 1/)
  await saying({ dataFormat: 9 }, /newer program/)
  await saying({ migrations: { tables: ['9999-moon'], writes: 1 } }, /migration 9999-moon of the tables/)
  await saying({ migrations: { tables: [], writes: 999 } }, /migration 999 of the write side/)
  await saying({ bytes: 2 ** 50 }, /MiB free; this takes/)
  await saying({ sha256: '0' }, /damaged: files.ndjson/)
  await t.rejects(attempt(part('nothing')), /ledger .*nothing.* cannot be read \(ENOENT\)/)
  await writeFile(part('foreign.json'), JSON.stringify({ format: 1, saltMark: 'a', entries: [] }))
  await t.rejects(attempt(part('foreign.json')), /another installation/)

  const log = join(backup, 'data', 'log', 'data.mdb')
  const bytes = await readFile(log)
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const other = Buffer.from(bytes)
      other.writeUInt8((other[at] ?? 0) ^ change, at)
      await writeFile(log, other)
      await t.rejects(attempt(), /damaged: log\/data.mdb has/)
    }),
    { numRuns: 3 }
  )
  await rm(log)
  await t.rejects(attempt(), /damaged: log\/data.mdb is missing/)
  t.same(await readdir(part('refused')), [])
  await rm(file)
  await t.rejects(attempt(), /no whole backup/)

  const environment = { DATA_DIR: part('data') }
  t.match(await gamenet(environment, ['restore', backup]), { code: 1, stderr: /no whole backup/ })
  t.match(await gamenet(environment, ['restore', part('busy')]), { code: 1, stderr: /holds something already/ })
  t.match(await gamenet({ ...environment, CLICKHOUSE_URL: 'http://x' }, ['restore', part('busy')]), { code: 2 })
  t.match(await gamenet(environment, ['backup', part('busy')]), { code: 1, stderr: /holds something already/ })
  t.match(await gamenet(environment, ['backup', join(part('data'), 'in')]), { code: 2, stderr: /apart from it/ })
  await mkdir(part('half'))
  await writeFile(join(part('half'), 'restoring.json'), `${part('busy')}\n`)
  t.match(await gamenet({ DATA_DIR: part('half') }, ['status']), { code: 1, stderr: /not restored to its end/ })
  await writeFile(join(part('data'), 'sparse'), '')
  await truncate(join(part('data'), 'sparse'), 2 ** 42)
  t.match(await gamenet(environment, ['backup', part('large')]), { code: 1, stderr: /MiB free; this takes/ })
  t.notOk((await readdir(part(''))).some((name) => name.startsWith('large')))
}

async function startPages(t: Test, names: readonly string[]) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.show({ registered: 21_345, online: 46, titles })
  const entries = [1, 2, 3].map((rank) => ({ rank, name: `racer ${rank}`, score: String(100 - rank) }))
  const lobbies = [{ host: 'ann', players: 8, most: 16 }]
  upstream.showGame(HALO, { lobbies, boards: [{ leaderboardId: BOARD, name: 'Laps', entries }] })
  upstream.showPlayers(names.map((username) => ({ username, gamertag: `${username} plays`, game: 'Halo 2' })))
  return upstream
}

/** An hour apart, over days that are over. */
function countsOfYears(): string {
  const rows = Array.from({ length: 2000 }, (_, hour) => {
    const at = new Date(Date.UTC(2025, 1, 1) + hour * 3_600_000).toISOString()
    return `${at},${100 + ((hour * 37) % 91)}`
  })
  return `observedAt,online\n${rows.join('\n')}\n`
}

/** Users rate one another at random; `next` resolves with one more acknowledged, `end` when none is under way. */
function rateUntil({
  caller,
  sessions,
  names,
  acknowledged
}: {
  readonly caller: Caller
  readonly sessions: readonly SignedIn[]
  readonly names: readonly string[]
  readonly acknowledged: Set<string>
}) {
  const pairs = fc
    .sample(
      fc.record({ by: fc.nat(names.length - 1), of: fc.nat(names.length - 1), stars: fc.integer({ min: 1, max: 5 }) }),
      RATED_AT_MOST
    )
    .filter(({ by, of }) => by !== of)
    .values()
  const next = async (): Promise<boolean> => {
    const pair = pairs.next().value
    if (pair === undefined) return false
    const [user, rater] = [names[pair.of], names[pair.by]]
    const { status } = await caller.ask('POST', `/api/profile/${user}/reputation`, sessions[pair.by], {
      stars: pair.stars,
      comment: 'seen'
    })
    if (status !== 200) throw new Error(`a rating was answered with ${status}`)
    acknowledged.add(`${nameKey(user ?? '')}/${nameKey(rater ?? '')}`)
    return true
  }
  return {
    next,
    end: async () => {
      while (await next());
    }
  }
}

const DAYS = 'from=2025-02-01T00:00:00Z&to=2025-04-01T00:00:00Z'

/** Every answer to everybody, but for those that tell the instant of the question. */
function pathsOf(names: readonly string[]): string[] {
  const board = `/api/game/${HALO}/leaderboards/${BOARD}`
  const profiles = names.flatMap((name) =>
    [
      '',
      '/achievements',
      '/games-played',
      '/leaderboard-scores',
      '/play-time',
      '/timeline',
      '/reputation?feedbackLimit=30'
    ].map((end) => `/api/profile/${name}${end}`)
  )
  return [
    ...profiles,
    ...['', '/leaderboard', '/recent'].map((end) => `/api/achievements${end}`),
    ...['registered-users', 'online-24h', 'daily-online'].map((name) => `/api/network-stats/${name}?${DAYS}`),
    ...['lobbies-24h', 'activity-summary', 'top-games'].map((name) => `/api/network-stats/${name}`),
    ...['', '/history', '/stats'].map((end) => `/api/title/${HALO}/matches${end}`),
    ...['', '/records'].map((end) => board + end),
    ...['/api/online-users', '/api/games', `/api/game/${HALO}`, `/api/game/${HALO}/leaderboards`],
    ...['/api/leaderboard-changes', '/api/leaderboard-changes?after=start', '/api/records/recent'],
    ...['/api/player/racer%201', '/api/player/racer%201/history', '/api/datasearch/player/racer%201'],
    ...['/api/datasearch/suggest?q=ra', `/api/title/${HALO}/online-users/history`]
  ]
}

/** The answers, once all that is known is in them: achievements are evaluated behind what is read. */
async function restingAnswers(environment: Environment, caller: Caller, names: readonly string[]) {
  const answers = async () => {
    await gamenetJson(environment, ['status', '--wait', '120'])
    const asked = pathsOf(names).map(async (path) => [path, await caller.ask('GET', path)] as const)
    return new Map(await Promise.all(asked))
  }
  for (let last = await answers(); ; ) {
    const now = await answers()
    if (isDeepStrictEqual(now, last)) return now
    last = now
  }
}
