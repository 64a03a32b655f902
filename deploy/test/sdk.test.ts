import { deepStrictEqual } from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual, promisify } from 'node:util'
import { Channel, LiveCounts } from '@gamenet/api/internals'
import { listening, recording } from '@gamenet/engines/testing'
import {
  ActivitySummary,
  DailyOnline,
  Game,
  Games,
  LobbyHistory,
  OnlineHistory,
  OnlineUsers,
  RegisteredUsers,
  TitleOnlineHistory,
  TitleSummary,
  TopGames
} from '@gamenet/schemas'
import { type GamenetClient, gamenetClient } from '@gamenet/sdk'
import fc from 'fast-check'
import { type Browser, chromium, type Page } from 'playwright-core'
import { type Test, test } from 'tap'
import { z } from 'zod'
import type { DemoAuth } from '../demo/auth/server.js'
import { gamenetJson, type Opened, plainWrites, ROOT } from './service/gamenet.js'
import { Caller, openPeopleService, signIn, startAuth } from './service/people-service.js'
import { startUpstream, type UpstreamTitle } from './service/upstream.js'

const MINUTE_MS = 60_000
/** Reached only by a hang. */
const WAIT_MS = 60_000

const halo: UpstreamTitle = {
  titleId: '4d530064',
  name: 'Halo 2',
  subtitle: 'Halo 2',
  online: 41,
  lobbies: { players: 16, sessions: 3 }
}
const ride: UpstreamTitle = {
  titleId: '55530036',
  name: "187 Ride & Die / #1 : it's + 100 %",
  subtitle: '',
  online: 5,
  lobbies: null
}
const page = { registered: 21_345, online: 87, titles: [halo, ride] }

const root = fileURLToPath(ROOT)
const browserPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
const isBrowserMissing = browserPath === undefined && process.env.CI !== 'true'
if (isBrowserMissing) console.error('NO BROWSER is installed: the client is not tested in one.')

/** The methods with a single request. */
type OneAnswer = Omit<GamenetClient, 'stream' | 'liveCounts' | 'getDatasetFile'>

/** Every method with all of its parameters, also those that the service refuses together. */
const everyMethod: {
  readonly [Name in Exclude<keyof OneAnswer, 'question'>]: (client: GamenetClient) => Promise<unknown>
} = {
  getRegisteredUsers: (client) => client.getRegisteredUsers({ days: 2 }),
  getOnlineHistory: (client) =>
    client.getOnlineHistory({ days: 2, from: new Date(0), to: 'x', tz: 'x', resolution: 'raw', knownAt: 'x' }),
  getLobbyHistory: (client) =>
    client.getLobbyHistory({ days: 2, from: new Date(0), to: 'x', tz: 'x', resolution: 60, knownAt: 'x' }),
  getActivitySummary: (client) => client.getActivitySummary({ period: '7d' }),
  getDatasets: (client) => client.getDatasets(),
  getDailyOnline: (client) => client.getDailyOnline({ days: 2, from: new Date(0), to: 'x' }),
  getTopGames: (client) => client.getTopGames({ days: 2, from: new Date(0), to: 'x', tz: 'x', limit: 3 }),
  getOnlineUsers: (client) => client.getOnlineUsers(),
  getTitleOnlineHistory: (client) =>
    client.getTitleOnlineHistory({
      ...{ titleId: 'x', hours: 2, from: new Date(0), to: 'x', tz: 'x', resolution: 60 },
      knownAt: 'x'
    }),
  getSparklines: (client) => client.getSparklines({ days: 2 }),
  getGame: (client) => client.getGame({ game: 'x' }),
  getTitle: (client) => client.getTitle({ titleId: 'x' }),
  getGames: (client) => client.getGames({ fields: 'all' }),
  getMatches: (client) => client.getMatches({ titleId: 'x' }),
  getGameMatches: (client) => client.getGameMatches({ titleId: 'x' }),
  getLobbies: (client) => client.getLobbies({ titleId: 'x' }),
  getMatchHistory: (client) => client.getMatchHistory({ titleId: 'x', hours: 2, from: new Date(0), to: 'x', tz: 'x' }),
  getLastMatches: (client) => client.getLastMatches({ titleId: 'x', hours: 2 }),
  getMatchStats: (client) => client.getMatchStats({ titleId: 'x' }),
  getLobbyStats: (client) => client.getLobbyStats({ titleId: 'x' }),
  getPlayer: (client) => client.getPlayer({ playerName: 'x', limit: 3, offset: 2 }),
  getPlayerHistory: (client) => client.getPlayerHistory({ playerName: 'x', limit: 3, offset: 2 }),
  getLeaderboardSummary: (client) => client.getLeaderboardSummary({ game: 'x' }),
  getLeaderboards: (client) => client.getLeaderboards({ game: 'x' }),
  getLeaderboardDays: (client) => client.getLeaderboardDays({ game: 'x', leaderboardId: 1 }),
  getLeaderboard: (client) =>
    client.getLeaderboard({
      game: 'x',
      leaderboardId: 1,
      limit: 2,
      offset: 3,
      asOf: new Date(0),
      knownAt: 'x',
      tz: 'x'
    }),
  compareLeaderboard: (client) =>
    client.compareLeaderboard({ game: 'x', leaderboardId: 1, from: new Date(0), to: 'x', tz: 'x', limit: 2 }),
  getLeaderboardRecords: (client) =>
    client.getLeaderboardRecords({ game: 'x', leaderboardId: 1, limit: 2, offset: 3, knownAt: 'x', tz: 'x' }),
  getRecentRecords: (client) =>
    client.getRecentRecords({ limit: 2, offset: 3, game: 'x', player: 'y', contested: true }),
  getLeaderboardChanges: (client) =>
    client.getLeaderboardChanges({
      limit: 2,
      offset: 3,
      after: 'x',
      game: 'x',
      leaderboardId: 1,
      player: 'x',
      changeType: 'new',
      since: new Date(0),
      until: 'x',
      tz: 'x'
    }),
  getCalendar: (client) =>
    client.getCalendar({ titleIds: 'x', metric: 'online', every: 'week', tz: 'x', from: 'x', to: 'x', rolling: 2 }),
  getHourMatrix: (client) => client.getHourMatrix({ titleId: 'x', tz: 'x', from: 'x', to: 'x' }),
  getTitleRanks: (client) => client.getTitleRanks({ titleId: 'x', every: 'day', tz: 'x', from: 'x', to: 'x' }),
  getPeaks: (client) => client.getPeaks(),
  getCoverage: (client) => client.getCoverage({ days: 2, from: 'x', to: 'x', tz: 'x' }),
  getStatus: (client) => client.getStatus(),
  searchByTime: (client) => client.searchByTime({ time: 'x', tolerance: 2, titleId: 'x', limit: 3 }),
  searchPlayer: (client) => client.searchPlayer({ playerName: 'x' }),
  searchPlayers: (client) => client.searchPlayers({ names: 'x', titleId: 'x' }),
  searchRoster: (client) =>
    client.searchRoster({ players: [{ playerName: 'x', rank: 1 }], tolerance: 2, titleId: 'x' }),
  getPlayerUsers: (client) => client.getPlayerUsers({ playerName: 'x' }),
  search: (client) => client.search({ q: 'x', limit: 3 }),
  suggestPlayers: (client) => client.suggestPlayers({ q: 'x', limit: 3 }),
  getProfile: (client) => client.getProfile({ username: 'x' }),
  editProfile: (client) => client.editProfile({ username: 'x', bio: '' }, { sessionKey: 'k' }),
  putProfile: (client) => client.putProfile({ username: 'x', bio: '' }, { sessionKey: 'k' }),
  getReputation: (client) => client.getReputation({ username: 'x', feedbackLimit: 2 }, { sessionKey: 'k' }),
  rateProfile: (client) => client.rateProfile({ username: 'x', stars: 5, comment: null }, { sessionKey: 'k' }),
  getUserGames: (client) => client.getUserGames({ username: 'x' }),
  getUserScores: (client) => client.getUserScores({ username: 'x', limit: 2 }),
  getPlayTime: (client) => client.getPlayTime({ username: 'x', days: 2 }),
  getTimeline: (client) => client.getTimeline({ username: 'x', limit: 2, after: 'x' }),
  comparePlayers: (client) => client.comparePlayers({ names: 'x,y', limit: 2, offset: 3 }),
  getAchievements: (client) => client.getAchievements(),
  getAchievementHolders: (client) => client.getAchievementHolders({ achievementKey: 'x', limit: 3, offset: 2 }),
  getUserAchievements: (client) => client.getUserAchievements({ username: 'x' }),
  getAchievementLeaderboard: (client) => client.getAchievementLeaderboard({ limit: 3 }),
  getRecentUnlocks: (client) => client.getRecentUnlocks({ limit: 3 }),
  getHealth: (client) => client.getHealth(),
  getReadiness: (client) => client.getReadiness()
}

const QUESTION = `-- The peak of a title.
SELECT max(c.online) AS peak FROM title_count AS c WHERE c.title_id = {titleId: String} AND c.observed_at > {since: DateTime}`

const OpenApi = z.object({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({
        operationId: z.string(),
        parameters: z.array(z.object({ name: z.string(), in: z.enum(['path', 'query', 'header']) })).default([]),
        responses: z.object({ 200: z.object({ content: z.record(z.string(), z.unknown()) }) })
      })
    )
  )
})

test('the client and a running service understand each other', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.show(page)
  const auth = await startAuth(t)
  const directory = t.testdir({ questions: { 'peak.sql': QUESTION } })
  const QUESTIONS_DIR = join(directory, 'questions')
  const settings = { UPSTREAM_URL: upstream.url, QUESTIONS_DIR, ...(await plainWrites(t)) }
  const service = await openPeopleService(t, join(directory, 'data'), auth, settings)
  const baseUrl = service.apiUrl
  const scrape = async () => {
    await gamenetJson({ OPERATOR_URL: service.operatorUrl }, ['scrape', 'all'])
    await gamenetJson({ OPERATOR_URL: service.operatorUrl }, ['status', '--wait', '180'])
  }
  await scrape()
  const client = gamenetClient({ baseUrl: `${baseUrl}/` })

  await t.test(
    'every JSON operation has a method with its path and parameters, and every method an operation',
    async (t) => {
      const { paths } = OpenApi.parse(await (await fetch(`${baseUrl}/openapi.json`)).json())
      const operations = Object.entries(paths)
        .flatMap(([path, methods]) =>
          Object.entries(methods).map(([method, operation]) => ({ path, method, operation }))
        )
        .filter(({ path }) => !path.startsWith('/api/questions/'))
        .filter(({ operation }) => !('text/event-stream' in operation.responses[200].content))
        .filter(({ operation }) => 'application/json' in operation.responses[200].content)
      const operationIds = operations.map(({ operation }) => operation.operationId)
      const { stream, liveCounts, getDatasetFile, ...asked } = client
      t.same(new Set(Object.keys(asked)), new Set([...operationIds, 'question']))
      const inPath: Readonly<Record<string, string>> = { leaderboardId: '1', hours: '2' }
      for (const { path, method, operation } of operations) {
        const { fetch, requests } = recording(async () => new Response('{}'))
        await everyMethod[operation.operationId as keyof typeof everyMethod](gamenetClient({ baseUrl, fetch }))
        const requested = new URL(requests[0]?.url ?? '')
        // Methods give parsed JSON; a file is for other programs.
        const inQuery = operation.parameters.filter((each) => each.in === 'query' && each.name !== 'format')
        t.equal(requests[0]?.method.toLowerCase(), method)
        t.equal(
          requested.pathname,
          path.replace(/\{(\w+)\}/g, (_, name) => inPath[name] ?? 'x'),
          operation.operationId
        )
        t.same(new Set(requested.searchParams.keys()), new Set(inQuery.map(({ name }) => name)), operation.operationId)
      }
    }
  )

  await t.test('a saved question is requested by its name', async (t) => {
    const since = new Date(0)
    t.same(await client.question('peak', { titleId: '4d530064', since }), [{ peak: 41 }])
    await t.rejects(client.question('peak', { titleId: '4d530064' }), { status: 400, code: 'request_invalid' })
  })

  await t.test('a file of a dataset is a stream: complete, by its hash, or a part of it', async (t) => {
    const file = { dataset: 'title', period: 'newest' }
    const bytesOf = async (part: object) =>
      Buffer.from(await new Response(await client.getDatasetFile({ ...file, ...part })).arrayBuffer())
    const whole = await bytesOf({})
    t.equal(whole.subarray(0, 4).toString(), 'PAR1')
    const { datasets } = await client.getDatasets()
    const sha256 = datasets.find(({ name }) => name === file.dataset)?.files[0]?.newest?.sha256 ?? ''
    t.equal(createHash('sha256').update(whole).digest('hex'), sha256)
    t.same(await bytesOf({ sha256 }), whole)
    t.same(await bytesOf({ firstByte: 4, lastByte: 9 }), whole.subarray(4, 10))
    t.same(await bytesOf({ firstByte: whole.length - 4 }), whole.subarray(-4))
    await t.rejects(client.getDatasetFile({ ...file, firstByte: whole.length }), { code: 'range_unsatisfiable' })
    await t.rejects(client.getDatasetFile({ ...file, sha256: '0'.repeat(64) }), { code: 'dataset_file_unknown' })
    await t.rejects(client.getDatasetFile(file, { signal: AbortSignal.abort(new Error('left')) }), { message: 'left' })
    const leaving = new AbortController()
    const reader = (await client.getDatasetFile(file, leaving)).getReader()
    leaving.abort(new Error('left'))
    await t.rejects(reader.closed, { message: 'left' })
  })

  await t.test('every method returns the data of the service, in the shape of the contract', async (t) => {
    const anHour = { from: new Date(Date.now() - 3_600_000), resolution: 'raw' } as const
    const answers: [z.ZodType, answer: unknown, expected: unknown][] = [
      [OnlineUsers, await client.getOnlineUsers(), { 'Halo 2': { online: 41 }, [ride.name]: { online: 5 } }],
      [Game, await client.getGame({ game: ride.name }), { titleId: '55530036', name: ride.name }],
      [TitleSummary, await client.getTitle({ titleId: 'halo 2' }), { online: 41, change24h: null, peak: 41, rank: 1 }],
      [Games, await client.getGames(), [ride.name, 'Halo 2']],
      [Games, await client.getGames({ fields: 'all' }), [{ name: ride.name }, { titleId: '4d530064', name: 'Halo 2' }]],
      [TitleOnlineHistory, await client.getTitleOnlineHistory({ titleId: '4D530064' }), [{ online_count: 41 }]],
      [TopGames, await client.getTopGames({ limit: 1 }), [{ name: 'Halo 2', peak: 41 }]],
      [OnlineHistory, await client.getOnlineHistory(anHour), [{ online_count: 87 }]],
      [OnlineHistory, await client.getOnlineHistory({ from: anHour.from.toISOString() }), [{ online_count: 87 }]],
      [LobbyHistory, await client.getLobbyHistory({ days: 2 }), [{ lobby_count: 3 }]],
      [RegisteredUsers, await client.getRegisteredUsers(), [{ registered_count: 21_345 }]],
      [DailyOnline, await client.getDailyOnline({ days: 2 }), [{ max_online: 87, samples: 1 }]],
      [ActivitySummary, await client.getActivitySummary({ period: '7d' }), { period: '7d', peakOnline: 87 }],
      [z.object({ status: z.literal('ok') }), await client.getHealth(), { status: 'ok' }],
      [z.object({ status: z.literal('ready') }), await client.getReadiness(), { status: 'ready' }]
    ]
    for (const [schema, answer, expected] of answers) {
      t.match(answer, expected)
      t.same(schema.parse(answer), answer, 'nothing beyond the contract, nothing missing')
      if (Array.isArray(answer) && Array.isArray(expected)) t.equal(answer.length, expected.length)
    }
  })

  await t.test('an unchanged answer is not sent again, a changed one is', async (t) => {
    const { fetch, requests } = recording()
    const client = gamenetClient({ baseUrl, fetch })
    await amidAMinute()
    const first = await client.getOnlineUsers()
    const second = await client.getOnlineUsers()
    t.same(second, first)
    for (const name of Object.keys(second)) delete second[name]
    t.same(await client.getOnlineUsers(), first, 'what a caller does to an answer stays with the caller')
    await client.getGames()
    t.same(
      requests.map(({ url, status, tag }) => [new URL(url).pathname, status, tag !== null]),
      [
        ['/api/online-users', 200, false],
        ['/api/online-users', 304, true],
        ['/api/online-users', 304, true],
        ['/api/games', 200, false]
      ]
    )
    upstream.show({ ...page, titles: [{ ...halo, online: 43 }, ride] })
    await scrape()
    t.match(await client.getOnlineUsers(), { 'Halo 2': { online: 43 } })
    t.equal(requests.at(-1)?.status, 200)
  })

  await t.test("a refusal is an error with the service's status and sentence", async (t) => {
    const refusals: [Promise<unknown>, number, string, RegExp][] = [
      [
        client.getGame({ game: 'No / Such # Game' }),
        404,
        'game_unknown',
        /^No game "No \/ Such # Game" is known; the nearest: ".*\.$/
      ],
      [client.getTitleOnlineHistory({ titleId: 'ffffffff' }), 404, 'title_unknown', /^No title ffffffff is known\.$/],
      [client.getTitleOnlineHistory({ titleId: 'a/b?c' }), 404, 'game_unknown', /^No game "a\/b\?c" is known\.$/],
      [
        client.getOnlineHistory({ days: 0 }),
        400,
        'request_invalid',
        /^days must be an integer from 1 to 30; got "0"\.$/
      ],
      [
        client.getTopGames({ from: '2026-03-32' }),
        400,
        'request_invalid',
        /^from must be a day or an ISO 8601 instant .*; got "2026-03-32"\.$/
      ]
    ]
    for (const [answer, status, code, message] of refusals) {
      const error = { name: 'GamenetError', status, code, message, retryAfterSeconds: undefined, requestId: /\w/ }
      await t.rejects(answer, error)
    }
  })

  await t.test('events are streamed as they are recorded, over disconnections, until the signal aborts', (t) =>
    streams(t, { baseUrl, scrape, show: (online) => upstream.show({ ...page, titles: [{ ...halo, online }, ride] }) })
  )

  const skip = isBrowserMissing ? 'NO BROWSER is installed' : false
  await t.test('in a browser', { skip }, async (t) => {
    const browser = await chromium.launch({
      executablePath: browserPath ?? '',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']
    })
    t.teardown(() => browser.close())
    await t.test('a page of another origin uses the client as it is, with 304 and refusals', (t) =>
      usesClient(t, browser, baseUrl)
    )
    await t.test('an EventSource receives events, and resumes after the last one', (t) =>
      usesEventSource(t, browser, baseUrl, scrape)
    )
    await t.test('the example page works under its strict policy', (t) => usesExamplePage(t, browser, service, auth))
  })

  await t.test(
    'the client that the service serves installs and calls, by the lines of the README and of /docs',
    async (t) => {
      const readme = await readFile(new URL('sdk/README.md', ROOT), 'utf8')
      const [, path = ''] = /^npm install http:\/\/127\.0\.0\.1:8080(\/sdk\/\S+\.tgz)$/m.exec(readme) ?? []
      t.match(await (await fetch(`${baseUrl}/docs/guide/start`)).text(), `${path}`)
      t.match(await (await fetch(`${baseUrl}/example/`)).text(), `href="${path}"`)
      const folder = t.testdir({
        'package.json': '{ "type": "module" }',
        'main.js': `import { gamenetClient } from '@gamenet/sdk'
console.log(Object.keys(await gamenetClient({ baseUrl: '${baseUrl}' }).getOnlineUsers()).length)`,
        'main.cjs': "console.log(typeof require('@gamenet/sdk').gamenetClient)"
      })
      const run = (command: string, ...args: string[]) =>
        promisify(execFile)('env', ['-u', 'NODE_OPTIONS', command, ...args], { cwd: folder })
      // Nothing is asked of a registry.
      await run('npm', 'install', '--registry', baseUrl, '--cache', 'cache', '--no-audit', '--no-fund', baseUrl + path)
      t.equal((await run(process.execPath, 'main.js')).stdout, '2\n')
      t.equal((await run(process.execPath, 'main.cjs')).stdout, 'function\n')
      const head = await fetch(baseUrl + path, { method: 'HEAD' })
      const etag = String(head.headers.get('etag'))
      t.same([head.status, head.headers.get('content-type')], [200, 'application/gzip'])
      t.equal((await fetch(baseUrl + path, { headers: { 'if-none-match': etag } })).status, 304)
      await writeFile(join(folder, 'sdk.tgz'), Buffer.from(await (await fetch(baseUrl + path)).arrayBuffer()))
      const served = (await run('tar', '-tzf', 'sdk.tgz')).stdout.trim().split('\n')
      const pack = ['pack', '--dry-run', '--json', '--ignore-scripts', fileURLToPath(new URL('sdk', ROOT))]
      const [packed] = JSON.parse((await run('npm', ...pack)).stdout) as [{ files: { path: string }[] }]
      const paths = new Set([...packed.files.map((file) => `package/${file.path}`), 'package/dist/cjs/package.json'])
      t.same(served.toSorted(), [...paths].toSorted(), 'the files of npm pack')
    }
  )

  await t.test('the example of the README runs', async (t) => {
    const readme = await readFile(new URL('sdk/README.md', ROOT), 'utf8')
    const example = /```js\n(.*?)```/s.exec(readme)?.[1]?.replace('http://127.0.0.1:8080', baseUrl) ?? ''
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', example], {
      cwd: root
    })
    t.match(
      stdout,
      /^43 Halo 2\n5 187 Ride .*\n[12] hours with a sample .*\n0 changes\ngame_unknown No game "No \/ Such # Game" is known;.*\.\n$/
    )
  })
})

test('live counts that are folded from differences equal the answers', async () => {
  const name = fc.constantFrom('Halo', 'Fable', '__proto__', 'constructor')
  const game = fc.record({
    online: fc.nat(2),
    lobbyHostNames: fc.array(fc.constantFrom('ann', 'bob'), { maxLength: 2 })
  })
  const answers = fc.array(fc.dictionary(name, game, { maxKeys: 4 }), { minLength: 1, maxLength: 8 })
  await fc.assert(fc.asyncProperty(answers, foldsTo), { numRuns: 200 })
})

async function foldsTo(answers: readonly object[]): Promise<void> {
  const channel = new Channel({ kinds: ['live-counts'], titleId: null, leaderboardId: null, playerKey: null })
  let newest = {}
  const counts = new LiveCounts({
    versions: { versionOf: () => 1, onChange: () => () => undefined },
    compute: async () => newest,
    channels: () => [channel],
    onFailure: () => undefined
  })
  const expected: unknown[] = []
  let frames = ''
  for (const [n, drawn] of answers.entries()) {
    // Without the prototypes of the generator.
    const answer = JSON.parse(JSON.stringify(drawn))
    newest = answer
    const isNew = !isDeepStrictEqual(expected.at(-1), answer)
    if (isNew) expected.push(answer)
    await counts.ready()
    if (n > 0) continue
    frames = counts.frame('ndjson')
    const write = (frame: Uint8Array): void => {
      frames += frame
    }
    channel.live.add({ format: 'ndjson', write })
  }
  const headers = { 'content-type': 'application/x-ndjson' }
  const client = gamenetClient({ baseUrl: 'http://localhost', fetch: async () => new Response(frames, { headers }) })
  const folded: unknown[] = []
  for await (const state of client.liveCounts()) if (folded.push(state) === expected.length) break
  deepStrictEqual(folded, expected)
}

/** Follows a stream whose connections break. */
async function streams(
  t: Test,
  needs: { readonly baseUrl: string; readonly scrape: () => Promise<void>; readonly show: (online: number) => void }
): Promise<void> {
  const abort = new AbortController()
  const connections: AbortController[] = []
  const client = gamenetClient({
    baseUrl: needs.baseUrl,
    fetch: (url, init) => {
      const connection = new AbortController()
      connections.push(connection)
      return fetch(url, { ...init, signal: AbortSignal.any([connection.signal, init?.signal ?? abort.signal]) })
    }
  })
  const events = client.stream(
    { kinds: ['title-count'], titleId: halo.titleId, after: 'start' },
    { signal: abort.signal }
  )
  const counts = client.liveCounts({ signal: abort.signal })
  const past = await events.next()
  t.match(past.value, { kind: 'title-count', cursor: /\w/, data: { gameName: 'Halo 2', online_count: 41 } })
  t.match((await events.next()).value, { data: { online_count: 43 } })
  t.match((await counts.next()).value, { 'Halo 2': { online: 43 } })
  for (const connection of connections.splice(0)) connection.abort()
  for (const online of [42, 43]) {
    needs.show(online)
    await needs.scrape()
  }
  const later = [await events.next(), await events.next()].map(({ value }) => value)
  t.match(later, [{ data: { online_count: 42 } }, { data: { online_count: 43 } }], 'nothing is missed')
  t.ok(connections.length > 0, 'over a new connection')
  t.match((await counts.next()).value, { 'Halo 2': { online: 43 } })
  const isGivenUp = new Promise<void>((resolve) => {
    const silent = gamenetClient({
      baseUrl: needs.baseUrl,
      timeoutMs: 20,
      fetch: (_url, init) =>
        new Promise((_, reject) => {
          init?.signal?.addEventListener('abort', () => {
            resolve()
            reject(init.signal?.reason)
          })
        })
    })
    silent
      .stream({}, { signal: abort.signal })
      .next()
      .catch(() => undefined)
  })
  await isGivenUp
  const waiting = events.next()
  abort.abort(new Error('enough'))
  await t.rejects(waiting, { message: 'enough' })
  await t.rejects(client.stream({ after: 'x' }).next(), { status: 400, code: 'cursor_invalid' })
}

/** A page of another origin listens with the browser's own client. */
async function usesEventSource(t: Test, browser: Browser, baseUrl: string, scrape: () => Promise<void>): Promise<void> {
  const origin = await listening(t, async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>')
  })
  const page = await newPage(t, browser)
  await page.goto(origin)
  await page.evaluate(`
    globalThis.seen = []
    globalThis.listen = (after) => {
      const source = new EventSource('${baseUrl}/api/stream?kinds=count&after=' + after)
      source.addEventListener('count', ({ data, lastEventId }) => seen.push({ ...JSON.parse(data), lastEventId }))
      globalThis.source = source
    }
    listen('start')`)
  await page.waitForFunction('seen.length > 0')
  await scrape()
  const before = (await page.evaluate('source.close(), seen.length')) as number
  await page.evaluate('listen(seen.at(-1).lastEventId)')
  await scrape()
  await page.waitForFunction(`seen.length > ${before}`)
  const instants = (await page.evaluate('seen.map(({ happenedAt }) => happenedAt)')) as string[]
  t.same(instants, [...new Set(instants)].sort(), 'each once, in order')
}

/** A page of another origin imports the client from its own server, and queries the service. */
async function usesClient(t: Test, browser: Browser, baseUrl: string): Promise<void> {
  const origin = await listening(t, async (request, response) => {
    const module = /^\/[a-z-]+\.js$/.exec(request.url ?? '')?.[0]
    const text = module === undefined ? '<!doctype html>' : await readFile(new URL(`sdk/dist/src${module}`, ROOT))
    response.writeHead(200, { 'content-type': module === undefined ? 'text/html' : 'text/javascript' }).end(text)
  })
  const page = await newPage(t, browser)
  await page.goto(origin)
  await amidAMinute()
  const seen = await page.evaluate(`(async () => {
    const { gamenetClient } = await import('/index.js')
    const statuses = []
    const readable = []
    const noting = async (...request) => {
      const response = await fetch(...request)
      statuses.push(response.status)
      readable.push(response.headers.has('X-Request-Id'))
      return response
    }
    const client = gamenetClient({ baseUrl: '${baseUrl}', fetch: noting })
    const answers = [await client.getOnlineUsers(), await client.getOnlineUsers()]
    const { status, message } = await client.getGame({ game: 'a/b' }).catch((error) => error)
    const plain = await gamenetClient({ baseUrl: '${baseUrl}' }).getGame({ game: '4D530064' })
    // The second comes from the browser's cache, revalidated.
    for (let n = 0; n < 2; n += 1) await (await noting('${baseUrl}/api/games')).text()
    const online = answers.map((answer) => answer['Halo 2'].online)
    return { answers: online, statuses, readable, status, message, name: plain.name }
  })()`)
  t.same(seen, {
    answers: [43, 43],
    statuses: [200, 304, 404, 200, 200],
    readable: [true, true, true, true, true],
    status: 404,
    message: 'No game "a/b" is known.',
    name: 'Halo 2'
  })
}

/** A page with separate cookies and storage, closed after the test. */
async function newPage(t: Test, browser: Browser): Promise<Page> {
  const context = await browser.newContext()
  t.teardown(() => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(WAIT_MS)
  return page
}

/** Signs in on the example page, shows friends and rates a profile. */
async function usesExamplePage(t: Test, browser: Browser, service: Opened, auth: DemoAuth): Promise<void> {
  const [ann, ben] = auth.people
  if (ann === undefined || ben === undefined) throw new Error('The demo auth service has fewer than two accounts.')
  const caller = new Caller(service, 1)
  const other = await signIn(auth, ben)
  await caller.ask('PATCH', `/api/profile/${ben.username}`, other, { bio: 'hello' })
  await caller.close()
  const page = await newPage(t, browser)
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => {
    if (/policy|uncaught/i.test(message.text())) faults.push(message.text())
  })
  const answer = await page.goto(`${service.apiUrl}/example/`)
  t.match(answer?.headers()['content-security-policy'], `default-src 'none'; script-src 'self'`)
  t.match(answer?.headers()['content-security-policy'], `connect-src 'self' ${auth.url};`)

  const signInAs = async (email: string, password: string) => {
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
  }
  await signInAs(ann.email, 'not her password')
  await page.getByText('The email address or the password is wrong.').waitFor()
  await signInAs(ann.email, ann.password)
  await page.getByRole('button', { name: ann.username }).waitFor()
  await page.locator('#friends li').first().waitFor()
  const friends = await page.locator('#friends li').allTextContents()
  t.ok(friends.length > 3)
  t.ok(friends.every((line) => / plays .+, for \d| was last seen /.test(line)))

  await page.getByLabel('Username').fill(ben.username.toUpperCase())
  await page.getByRole('button', { name: 'Show' }).click()
  await page.getByText('5 stars of 0 ratings').waitFor()
  t.equal(await page.locator('#profile-name').textContent(), ben.username)
  await page.getByLabel('Stars').fill('2')
  await page.getByLabel('Comment').fill('<b>bold</b> & fair')
  await page.getByRole('button', { name: 'Rate' }).click()
  await page.getByText('4.73 stars of 1 ratings; you gave 2').waitFor()
  await page.getByText(`${ann.username}: 2 stars, “<b>bold</b> & fair”`).waitFor()

  await page.getByRole('button', { name: ann.username }).click()
  await page.locator('#profile-name', { hasText: ann.username }).waitFor()
  await page.getByRole('button', { name: 'Rate' }).click()
  await page.locator('#message[data-failed="true"]').waitFor()
  t.match(await page.locator('#message').textContent(), /yourself|own/i)

  await page.reload()
  await page.getByRole('button', { name: ann.username }).waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  t.equal(await page.evaluate(`localStorage.getItem('service_auth')`), null)
  t.same(faults, [], 'no violation of the policy, no unhandled rejection')
}

test('the packed SDK works in an empty folder: ESM, CJS and types, without other packages', async (t) => {
  const folder = t.testdir({
    'package.json': '{ "type": "module" }',
    'main.js': `import { gamenetClient } from '@gamenet/sdk'\n${PRINTS_METHODS}`,
    'main.cjs': `const { gamenetClient } = require('@gamenet/sdk')\n${PRINTS_METHODS}`,
    'main.ts': CONSUMER,
    'other.cts': CONSUMER
  })
  // tap's loader, which NODE_OPTIONS adds to every process, keeps tsc from starting.
  const run = (command: string, args: readonly string[], cwd = folder) =>
    promisify(execFile)('env', ['-u', 'NODE_OPTIONS', command, ...args], { cwd })
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], join(root, 'sdk'))
  const [packed] = z
    .array(z.object({ filename: z.string(), files: z.array(z.object({ path: z.string() })) }))
    .parse(JSON.parse(stdout))
  const paths = packed?.files.map(({ path }) => path) ?? []
  for (const path of ['LICENSE', 'README.md', 'package.json', 'dist/cjs/package.json']) t.ok(paths.includes(path), path)
  t.ok(
    paths.every((path) =>
      /^(?:LICENSE|README\.md|(?:dist\/cjs\/)?package\.json|dist\/(?:src|cjs)\/[a-z-]+(?:\.d\.ts|\.js))$/.test(path)
    )
  )
  const home = join(folder, 'node_modules/@gamenet/sdk')
  await mkdir(home, { recursive: true })
  await run('tar', ['-xzf', join(folder, packed?.filename ?? ''), '-C', home, '--strip-components=1'])
  const methods = [...Object.keys(everyMethod), 'question', 'getDatasetFile', 'stream', 'liveCounts'].toSorted()
  for (const main of ['main.js', 'main.cjs']) {
    const { stdout } = await run(process.execPath, [main])
    t.same(JSON.parse(stdout), methods, main)
  }
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const flags = '--noEmit --strict --module nodenext --target es2022 --lib es2022,dom --types'.split(' ')
  const checked = run(process.execPath, [tsc, ...flags, '', 'main.ts', 'other.cts'])
  await t.resolves(checked.catch(({ stdout }) => Promise.reject(new Error(stdout))))
})

const PRINTS_METHODS = "console.log(JSON.stringify(Object.keys(gamenetClient({ baseUrl: 'http://x' })).sort()))"

/** The code of a consumer in TypeScript. */
const CONSUMER = `import { type Call, GamenetError, gamenetClient, type OnlinePoint, type Result, ServiceAuth } from '@gamenet/sdk'
const client = gamenetClient({ baseUrl: 'http://x' })
export const call: Call<OnlinePoint[]> = client.getOnlineHistory({ days: 1 })
export async function main(): Promise<number | undefined> {
  const { data, cursor, headers }: Result<OnlinePoint[]> = await call.result()
  for await (const page of client.getLeaderboardChanges({ after: cursor ?? 'start' }).pages()) page.data[0]?.changeType
  if (new GamenetError(0, '').code === 'game_unknown') new ServiceAuth().on('logout', () => headers.get('etag'))
  return data[0]?.online_count
}
`

/** Live counts change with the minute, so this waits if the next minute is near. */
async function amidAMinute(): Promise<void> {
  const intoMs = Date.now() % MINUTE_MS
  if (intoMs > 0.75 * MINUTE_MS) await pause(MINUTE_MS - intoMs + 100)
}
