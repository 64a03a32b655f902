import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openChdb } from '@gamenet/engines'
import { until } from '@gamenet/engines/testing'
import { RebuildPlan, RebuildStatus, SwapReport, VerifyReport } from '@gamenet/projector'
import { instantOf } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { z } from 'zod'
import { Status } from '../src/operate/status/operation.js'
import { ask } from './service/ask.js'
import { AUTHORIZED, type Environment, gamenet, openGamenet, plainWrites, spawnGamenet } from './service/gamenet.js'

/*
 * A real service with counts and boards, its projections rebuilt through the command line during continuous requests.
 */

const TITLES = ['4d530064', '55530036']
const FIRST_MS = Date.UTC(2020, 0, 1)
const COUNTS = 600
const INTERVAL_MS = 300_000
/** Requests without a pause would take the processor time of the service. */
const POLL_MS = 50
const BOARD_ENTRIES = 100
const BOARDS = [1, 2]
const DAY = 'from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z'
const PATHS = [
  ...TITLES.map((titleId) => `/api/title/${titleId}/online-users/history?${DAY}&resolution=raw`),
  `/api/network-stats/top-games?from=2020-01-01T00:00:00Z&to=2020-01-03T00:00:00Z`,
  ...BOARDS.map((board) => `/api/game/${TITLES[0]}/leaderboards/${board}`),
  '/api/player/Player%207',
  '/api/leaderboard-changes?after=start&limit=500'
]

const onlineAt = (title: number, n: number) => ((n + 1) * 7919 * (title + 1)) % 97

/** Returns the JSON output of a command; its exit code must be `code`. */
async function rebuildJson<Output>(
  t: Test,
  environment: Environment,
  schema: z.ZodType<Output>,
  args: readonly string[],
  code = 0
): Promise<Output> {
  const done = await gamenet(environment, ['rebuild', ...args, '--json'])
  t.equal(done.code, code, `rebuild ${args.join(' ')} ends with ${code}: ${done.stderr}`)
  return schema.parse(JSON.parse(done.stdout))
}

async function refused(t: Test, environment: Environment, args: readonly string[], code: number, sentence: RegExp) {
  const done = await gamenet(environment, ['rebuild', ...args])
  t.equal(done.code, code, `rebuild ${args.join(' ')} ends with ${code}`)
  t.match(done.stderr, sentence)
  t.notMatch(done.stderr, /\n\s+at /, 'no stack')
}

/** Requests everything repeatedly until it is stopped; returns the answers that differ from the first ones. */
function askAllTheTime(apiUrl: string, first: ReadonlyMap<string, string>) {
  const faults: string[] = []
  const tags = new Map<string, string>()
  let asked = 0
  let isOn = true
  const loop = async (path: string) => {
    while (isOn) {
      const held = tags.get(path)
      const answer = await fetch(apiUrl + path, { headers: held === undefined ? {} : { 'If-None-Match': held } })
      const text = await answer.text()
      asked += 1
      const isAsBefore = answer.status === 304 || (answer.status === 200 && text === first.get(path))
      if (!isAsBefore) faults.push(`${path}: ${answer.status} ${text.slice(0, 200)}`)
      tags.set(path, answer.headers.get('etag') ?? '')
      await pause(POLL_MS)
    }
  }
  const loops = PATHS.map(loop)
  return async () => {
    isOn = false
    await Promise.all(loops)
    return { faults, asked }
  }
}

async function answersOf(apiUrl: string): Promise<Map<string, string>> {
  const answers = new Map<string, string>()
  for (const path of PATHS) {
    const { status, text } = await ask(apiUrl + path)
    if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
    answers.set(path, text)
  }
  return answers
}

async function importAll(t: Test, environment: Environment, directory: string): Promise<void> {
  const counts = TITLES.flatMap((titleId, title) =>
    Array.from(
      { length: COUNTS },
      (_, n) => `${titleId},${instantOf(FIRST_MS + n * INTERVAL_MS)},${onlineAt(title, n)}`
    )
  )
  const boards = BOARDS.map((leaderboardId) => ({
    titleId: TITLES[0],
    leaderboardId,
    name: `Board ${leaderboardId}`,
    observedAt: instantOf(FIRST_MS)
  }))
  const entries = BOARDS.flatMap((leaderboardId) =>
    Array.from({ length: BOARD_ENTRIES }, (_, n) => ({
      titleId: TITLES[0],
      leaderboardId,
      playerName: `Player ${(n * 7) % BOARD_ENTRIES}`,
      changeType: 'new',
      rank: n + 1,
      rating: String(10_000 - n),
      changedAt: instantOf(FIRST_MS + n * 1000)
    }))
  )
  const files: [topic: string, file: string, lines: readonly unknown[]][] = [
    ['title-count', 'counts.csv', ['titleId,observedAt,online', ...counts]],
    ['leaderboard', 'boards.ndjson', boards.map((row) => JSON.stringify(row))],
    ['leaderboard-entry', 'entries.ndjson', entries.map((row) => JSON.stringify(row))]
  ]
  for (const [topic, file, lines] of files) {
    await writeFile(join(directory, file), `${lines.join('\n')}\n`)
    const done = await gamenet(environment, ['import', topic, join(directory, file), '--json'])
    t.equal(done.code, 0, `${topic} is imported: ${done.stderr}`)
  }
}

test('a projection is rebuilt while the old one serves, compared, and swapped in', async (t) => {
  const directory = t.testdir({})
  const environment: Environment = {
    DATA_DIR: join(directory, 'data'),
    UPSTREAM_URL: 'http://127.0.0.1:9',
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0',
    SCRAPE_MATCHES_SECONDS: '0',
    SCRAPE_BOARDS_SECONDS: '0',
    SCRAPE_PLAYERS_SECONDS: '0',
    ...(await plainWrites(t))
  }
  const open = () => openGamenet(t, environment)
  let service = await open()
  await importAll(t, environment, directory)
  const first = await answersOf(service.apiUrl)
  const commands = { t, environment }

  await t.test('during continuous requests', async (t) => {
    const stopRequests = askAllTheTime(service.apiUrl, first)
    await swapsAndGoesBack({ ...commands, t })
    const { faults, asked } = await stopRequests()
    t.same(faults, [], `none of ${asked} answers failed or was another one`)
    t.same(await answersOf(service.apiUrl), first)
  })
  await t.test('an impossible operation is reported in a sentence and an exit code', (t) => refuses({ ...commands, t }))
  await t.test('it continues when its command ends', (t) => outlivesItsCommand({ ...commands, t }, service.operatorUrl))
  await t.test('it stays paused over a restart, and is resumed or cancelled on request', async (t) => {
    await hold({ ...commands, t })
    await service.stop()
    await spoil(join(directory, 'data', 'tables'))
    service = await open()
    await resumesAndIsEnded({ ...commands, t })
  })
  await t.test('differences are shown row by row, and prevent the swap unless they are accepted', async (t) => {
    t.strictNotSame(await answersOf(service.apiUrl), first, 'an answer is wrong')
    await showsDifferences({ ...commands, t })
    t.same(await answersOf(service.apiUrl), first, 'and is right again')
  })
  await t.test('one board is corrected, and no other answer gets another identity', async (t) => {
    await service.stop()
    await spoilBoards(join(directory, 'data', 'tables'))
    service = await open()
    await correctsOneBoard({ ...commands, t }, service, first)
  })
  await t.test('without a service the command fills it to its end', async (t) => {
    await service.stop()
    const filled = await rebuildJson(t, environment, RebuildStatus, ['start', 'network-count'])
    t.equal(filled.state, 'filled')
    t.match(await rebuildJson(t, environment, VerifyReport, ['verify', 'network-count']), { isEqual: true })
  })
})

type Commands = { readonly t: Test; readonly environment: Environment }

async function swapsAndGoesBack({ t, environment }: Commands): Promise<void> {
  for (const projection of ['title-count', 'leaderboard-history']) {
    const plan = await rebuildJson(t, environment, RebuildPlan, ['plan', projection])
    t.same(plan.obstacles, [])
    t.ok(plan.unit.length > 1, 'what reads its tables is rebuilt with it')
    const filled = await rebuildJson(t, environment, RebuildStatus, ['start', projection, '--follow'])
    t.match(filled, { projection, state: 'filled', progress: { done: plan.events, total: plan.events } })
    await refused(t, environment, ['swap', projection], 1, /was not verified/)
    const report = await rebuildJson(t, environment, VerifyReport, ['verify', projection])
    t.match(report, { isEqual: true, differences: [] })
    t.ok(report.tables.some(({ liveRows }) => liveRows > 0))
    t.match(await rebuildJson(t, environment, SwapReport, ['swap', projection]), { id: filled.id })
    t.match(await rebuildJson(t, environment, SwapReport, ['rollback', projection]), { id: filled.id })
    await refused(t, environment, ['rollback', projection], 1, /There are no old tables of/)
  }
  await printsThePlan({ t, environment })
  await loadsAgainFirst({ t, environment })
  const [newest] = await rebuildJson(t, environment, z.array(RebuildStatus), ['status'])
  t.match(newest, { projection: 'title-count', isFromLog: true, state: 'rolled-back' })
}

async function printsThePlan({ t, environment }: Commands): Promise<void> {
  const plan = await gamenet(environment, ['rebuild', 'plan', 'title-count'])
  t.equal(plan.code, 0, plan.stderr)
  const events = TITLES.length * COUNTS
  // A row that was stored twice is counted twice until a merge.
  const holds = (table: string) => `${table} \\([1-9]\\d* rows, [\\d.]+ [kM]B\\)`
  for (const said of [
    /^title-count is rebuilt with all projections that read its tables: 3, swapped together\.\n/,
    new RegExp(`^title-count +event_title_count +${holds('title_count')} +${events} +\\S`, 'm'),
    new RegExp(`^title-count-hour +event_title_count, title_count +${holds('title_count_hour')} +${events} +\\S`, 'm'),
    new RegExp(`^${3 * events} events, about .+ estimated from a sample$`, 'm'),
    /^[\d.]+ [kM]B of additional disk space are needed; [\d.]+ [MGT]B are free$/m
  ]) {
    t.match(plan.stdout, said)
  }
}

async function loadsAgainFirst({ t, environment }: Commands): Promise<void> {
  const plan = await gamenet(environment, ['rebuild', 'plan', 'title-count', '--from-log'])
  t.match(plan.stdout, /^title-count is rebuilt with all projections that read its events: \d+, swapped together\.$/m)
  t.match(
    plan.stdout,
    new RegExp(`^ +the log of title-count +event_title_count \\(.*\\) +${TITLES.length * COUNTS} +\\S`, 'm')
  )
  const start = ['start', 'title-count', '--from-log', '--follow']
  t.match(await rebuildJson(t, environment, RebuildStatus, start), { isFromLog: true, state: 'filled' })
  const report = await rebuildJson(t, environment, VerifyReport, ['verify', 'title-count'])
  const events = TITLES.length * COUNTS
  t.match(report, { isEqual: true, tables: [{ table: 'event_title_count', liveRows: events, freshRows: events }] })
  await rebuildJson(t, environment, SwapReport, ['swap', 'title-count'])
  await rebuildJson(t, environment, SwapReport, ['rollback', 'title-count'])
}

async function refuses({ t, environment }: Commands): Promise<void> {
  const future = instantOf(Date.now() + 86_400_000)
  for (const [args, code, sentence] of [
    [['start', 'title-cuont'], 2, /There is no projection "title-cuont"; there are .*title-count/],
    [['status', 'title-cuont'], 2, /There is no projection "title-cuont"; there are .*title-count/],
    [['plan'], 2, /needs <projection>/],
    [['mend', 'title-count'], 2, /has no command "mend"/],
    [['start', 'title-count', '--until', future], 2, /future/],
    [['start', 'title-count', '--until', '99999999999999999999'], 2, /--until 99999999999999999999 is in the future/],
    [['start', 'title-count', '--until', 'tomorrow'], 2, /"tomorrow"/],
    [['start', 'title-count', '--rate', '0'], 2, /events per second, 1 to 9{15} .*got "0"/],
    [['start', 'title-count', '--rate', 'fast'], 2, /1 to 9{15} .*got "fast"/],
    [['start', 'title-count', '--rate', '9007199254740993'], 2, /1 to 9{15} .*got "9007199254740993"/],
    [['start', 'title-count', '--key', 'ffffffff'], 2, /There is no event and no row of ffffffff in event_title_count/],
    [['start', 'title-count', '--key', 'x', '--rate', '5'], 2, /--key cannot be combined with .*--rate/],
    [['start', 'network-count', '--key', '4d530064'], 2, /Rows of network-count.*gamenet rebuild start network-count/],
    [['rate', 'title-count', '1.5'], 2, /0 to 9{15} .*got "1.5"/],
    [['rate', 'title-count', '5'], 1, /There is no rebuild of title-count under way/],
    [['start', 'all', '--from-log'], 2, /give a projection instead of all/],
    [['resume', 'title-count'], 1, /There is no rebuild of title-count under way/],
    [['pause', 'title-count'], 1, /There is no rebuild of title-count under way/],
    [['drop', 'title-count'], 1, /There are no old tables of title-count/]
  ] as const) {
    await refused(t, environment, args, code, sentence)
  }
  const inspected = await rebuildJson(t, environment, RebuildStatus, [
    'start',
    'title-count',
    '--until',
    '1000',
    '--rate',
    '1000000',
    '--follow'
  ])
  t.match(inspected, { state: 'filled', until: '1000', rate: 1e6 })
  await rebuildJson(t, environment, VerifyReport, ['verify', 'title-count'], 1)
  await refused(t, environment, ['swap', 'title-count', '--accept-differences'], 1, /inspection/)
  t.match(await rebuildJson(t, environment, RebuildStatus, ['cancel', 'title-count']), { state: 'cancelled' })
}

async function outlivesItsCommand({ t, environment }: Commands, operatorUrl: string): Promise<void> {
  const child = spawnGamenet(environment, ['rebuild', 'start', 'leaderboard-history', '--follow'])
  if (child.stderr === null) throw new Error('the command was to have a standard error')
  const [said] = await once(child.stderr.setEncoding('utf8'), 'data')
  t.match(said, /continues in the service/)
  const ended = once(child, 'close')
  child.kill('SIGKILL')
  await ended
  const filled = await untilFilled(t, environment, 'leaderboard-history')
  await refused(t, environment, ['start', 'leaderboard-history'], 1, /Rebuild \d+ of leaderboard-history is filled/)
  t.match(await rebuildJson(t, environment, z.array(RebuildStatus), ['status', 'player-entry']), [{ id: filled.id }])
  await refused(t, environment, ['start', 'player-entry'], 1, /Rebuild \d+ of leaderboard-history is filled/)
  const status = Status.parse(JSON.parse((await gamenet(environment, ['status', '--json'])).stdout))
  t.match(
    status.rebuilds.find(({ id }) => id === filled.id),
    { projection: 'leaderboard-history', state: 'filled' }
  )
  const metrics = async () => await (await fetch(`${operatorUrl}/metrics`)).text()
  t.match(await metrics(), /^gamenet_rebuilds\{state="filled"\} 1$/m)
  t.match(
    (await gamenet(environment, ['status'])).stdout,
    /REBUILD +PROJECTION .*\n\d+ +leaderboard-history +100 % .* filled/
  )
  await rebuildJson(t, environment, RebuildStatus, ['cancel', 'leaderboard-history'])
  t.match(await metrics(), /^gamenet_rebuilds\{state="filled"\} 0$/m)
  t.match(
    (await gamenet(environment, ['rebuild', 'status'])).stdout,
    new RegExp(`^${filled.id} .* \\d{4}-\\S+ +cancelled`, 'm')
  )
}

async function untilFilled(t: Test, environment: Environment, projection: string): Promise<RebuildStatus> {
  let found: RebuildStatus[] = []
  await until(async () => {
    found = await rebuildJson(t, environment, z.array(RebuildStatus), ['status', projection])
    if (found[0]?.state !== 'filling') t.match(found[0], { state: 'filled' })
    return found[0]?.state !== 'filling'
  }, 0)
  return found[0] as RebuildStatus
}

/** Small tables are filled quickly; a rebuild that was filled before it could be paused is started again. */
async function hold({ t, environment }: Commands): Promise<void> {
  await until(async () => {
    await rebuildJson(t, environment, RebuildStatus, ['start', 'leaderboard-history'])
    const done = await gamenet(environment, ['rebuild', 'pause', 'leaderboard-history', '--json'])
    if (done.code === 0) {
      t.match(JSON.parse(done.stdout), { state: 'paused' })
      return true
    }
    t.match(done.stderr, /is filled and cannot be paused/)
    await rebuildJson(t, environment, RebuildStatus, ['cancel', 'leaderboard-history'])
    return false
  }, 0)
}

async function resumesAndIsEnded({ t, environment }: Commands): Promise<void> {
  const [held] = await rebuildJson(t, environment, z.array(RebuildStatus), ['status', 'leaderboard-history'])
  t.match(held, { state: 'paused' })
  t.match(await rebuildJson(t, environment, RebuildStatus, ['resume', 'leaderboard-history', '--follow']), {
    state: 'filled'
  })
  t.match(await rebuildJson(t, environment, VerifyReport, ['verify', 'leaderboard-history']), { isEqual: true })
  t.match(await rebuildJson(t, environment, SwapReport, ['swap', 'leaderboard-history']), { id: held?.id })
  t.match(await rebuildJson(t, environment, RebuildStatus, ['drop', 'leaderboard-history']), { state: 'dropped' })
  await refused(t, environment, ['rollback', 'leaderboard-history'], 1, /There are no old tables of/)
}

/** Edits the rows of all boards, and removes those of one player. */
async function spoilBoards(path: string): Promise<void> {
  const tables = await openChdb({ path })
  for (const view of ['leaderboard_history', 'leaderboard_entry', 'player_entry']) {
    const [row] = await tables.control.rows(`SELECT as_select FROM system.tables WHERE name = {view: String}`, { view })
    const [table] = /\w+__\d+/.exec(String(row?.as_select)) ?? []
    await tables.control.execute(`DELETE FROM ${table} WHERE player = 'Player 7'`)
    if (view === 'leaderboard_history') continue
    await tables.control.execute(
      `INSERT INTO ${table} SELECT * REPLACE ('4242' AS rating, 18446744073709551615 AS version) FROM ${table}`
    )
  }
  await tables.close()
}

/** By the command, and by the operator's route; one of the two boards at a time. */
async function correctsOneBoard(
  { t, environment }: Commands,
  { apiUrl, operatorUrl }: { readonly apiUrl: string; readonly operatorUrl: string },
  first: ReadonlyMap<string, string>
): Promise<void> {
  const [one = '', two = ''] = BOARDS.map((board) => `${TITLES[0]}/${board}`)
  const pathOf = (key: string) => `/api/game/${key.replace('/', '/leaderboards/')}`
  const others = PATHS.filter((path) => !/player|leaderboard/.test(path))
  const identities = async (paths: readonly string[]) =>
    await Promise.all(paths.map(async (path) => (await ask(apiUrl + path)).headers.get('etag')))
  const spoilt = await answersOf(apiUrl)
  for (const key of [one, two]) t.not(spoilt.get(pathOf(key)), first.get(pathOf(key)), `${key} is wrong`)
  const before = { others: await identities(others), two: await identities([pathOf(two)]) }

  const corrected = await rebuildJson(t, environment, RebuildStatus, ['start', 'leaderboard-history', '--key', one])
  t.match(corrected, { state: 'swapped', key: one, verification: { isEqual: false } })
  const answers = await answersOf(apiUrl)
  t.equal(answers.get(pathOf(one)), first.get(pathOf(one)), 'the board is right')
  t.equal(answers.get(pathOf(two)), spoilt.get(pathOf(two)), 'the other one is as wrong as before')
  t.same({ others: await identities(others), two: await identities([pathOf(two)]) }, before)

  const route = `${operatorUrl}/rebuilds/leaderboard-history/start?key=${encodeURIComponent(two)}`
  const begun = await fetch(route, { method: 'POST', headers: AUTHORIZED })
  const { id } = RebuildStatus.parse(await begun.json())
  const isSwapped = async () => {
    const found = await rebuildJson(t, environment, z.array(RebuildStatus), ['status', 'leaderboard-history'])
    const state = found.find((each) => each.id === id)?.state
    if (state === 'cancelled') throw new Error(JSON.stringify(found))
    return state === 'swapped'
  }
  await until(isSwapped, POLL_MS)
  t.same(await answersOf(apiUrl), first, 'all answers are right again')
  t.same(await identities(others), before.others)
  const shown = await gamenet(environment, ['rebuild', 'status', 'leaderboard-history'])
  t.match(shown.stdout, new RegExp(`^${id} +leaderboard-history ${two} +100 % .* swapped; \\d+ rows`, 'm'))
  const again = await gamenet(environment, ['rebuild', 'start', 'leaderboard-history', '--key', two])
  t.match(
    again.stdout,
    new RegExp(`${two} is right: 0 rows differed. \`gamenet rebuild rollback leaderboard-history\``)
  )
  t.match(await rebuildJson(t, environment, SwapReport, ['rollback', 'leaderboard-history']), {})
  t.same(await answersOf(apiUrl), first)
}

/** Inserts a count without an event into the tables. */
async function spoil(path: string): Promise<void> {
  const tables = await openChdb({ path })
  await tables.control.execute(
    `INSERT INTO title_count__0 (title_id, ts, online, sessions, lobby_players, position)
     SELECT c.title_id, c.ts, 4242, c.sessions, c.lobby_players, 18446744073709551615 FROM title_count AS c FINAL
     WHERE c.title_id = {title: String} AND c.ts = fromUnixTimestamp64Milli({at: Int64}, 'UTC')`,
    { title: TITLES[0], at: FIRST_MS + INTERVAL_MS }
  )
  await tables.close()
}

async function showsDifferences({ t, environment }: Commands): Promise<void> {
  await rebuildJson(t, environment, RebuildStatus, ['start', 'title-count', '--follow'])
  const verified = await gamenet(environment, ['rebuild', 'verify', 'title-count'])
  t.equal(verified.code, 1, verified.stderr)
  t.match(verified.stdout, /title_count +1200 +1200 +1 of \d+ +1\n/)
  t.match(
    verified.stdout,
    /title_count title_id "4d530064", ts "2020-01-01 00:05:00.000"\n +online +old 4242 +new \d+\n/
  )
  t.match(verified.stdout, /from the events at title-count\/\d+\/\d+\/\d+\n/)
  await refused(t, environment, ['swap', 'title-count'], 1, /differs from the tables that serve in 1 rows/)
  await rebuildJson(t, environment, SwapReport, ['swap', 'title-count', '--accept-differences'])
}
