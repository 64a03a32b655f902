import { statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { endpoints } from '@gamenet/api'
import { openChdb } from '@gamenet/engines'
import { runs } from '@gamenet/engines/testing'
import { SwapReport } from '@gamenet/projector'
import { instantOf } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { Preview } from '../src/operate/rebuild/operation.js'
import { ask } from './service/ask.js'
import {
  AUTHORIZED,
  type Environment,
  gamenet,
  gamenetJson,
  ON_REQUEST,
  openGamenet,
  plainWrites
} from './service/gamenet.js'

/*
 * A real service with counts and boards, whose tables somebody has edited. A preview names each answer that the swap of
 * a rebuild changes, and no other one.
 */

/** Answers that are compared before and after a swap. */
const ANSWERS = Math.max(50, runs(34).numRuns)
const TITLES = ['4d530064', '4d530065', '55530036']
const PLAYERS = 10
/** Each has four answers of its own. */
const BOARDS = Math.ceil(ANSWERS / 4)
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const FIRST_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS - 4 * DAY_MS
const FIRST_DAY = instantOf(FIRST_MS).slice(0, 10)
const SECOND_DAY = instantOf(FIRST_MS + DAY_MS).slice(0, 10)
const titleOf = (board: number) => TITLES[board % TITLES.length] ?? ''

const VALUES: Readonly<Record<string, readonly string[]>> = {
  game: TITLES,
  titleId: TITLES,
  playerName: Array.from({ length: PLAYERS }, (_, n) => `Player ${n}`),
  hours: ['24']
}

/** The answers of all paths with the keys of this world, by default and of a day that somebody has edited. */
function sampled(): string[] {
  const paths = endpoints.flatMap(({ method, path, input }) => {
    const names: readonly string[] = path.match(/(?<=:)\w+/g) ?? []
    if (method === 'POST' || names.includes('username') || names.includes('achievementKey')) return []
    const isBoards = names.includes('leaderboardId')
    const given = isBoards
      ? Array.from({ length: BOARDS }, (_, board) => path.replace(/:game/, titleOf(board)).replace(/:\w+/, `${board}`))
      : (VALUES[names[0] ?? ''] ?? ['']).map((value) => path.replace(/:\w+/, encodeURIComponent(value)))
    const whole = given.map((each) => each.replace(':hours', '24'))
    const isPeriod = 'from' in input.shape && 'to' in input.shape && !isBoards
    return [...whole, ...(isPeriod ? whole.map((each) => `${each}?from=${FIRST_DAY}&to=${SECOND_DAY}`) : [])]
  })
  return paths
}

async function importAll(environment: Environment, directory: string): Promise<void> {
  const counts = TITLES.flatMap((titleId, title) =>
    Array.from(
      { length: 4 * 24 },
      (_, n) => `${titleId},${instantOf(FIRST_MS + n * HOUR_MS)},${((n + 1) * 7919 * (title + 1)) % 97}`
    )
  )
  const boards = Array.from({ length: BOARDS }, (_, leaderboardId) => ({
    ...{ titleId: titleOf(leaderboardId), leaderboardId, name: `Board ${leaderboardId}` },
    observedAt: instantOf(FIRST_MS)
  }))
  const entries = boards.flatMap(({ titleId, leaderboardId }) =>
    Array.from({ length: 8 }, (_, n) => ({
      ...{ titleId, leaderboardId, playerName: `Player ${(n + leaderboardId) % PLAYERS}`, changeType: 'new' },
      ...{ rank: n + 1, rating: String(10_000 - n), changedAt: instantOf(FIRST_MS + n * 1000) }
    }))
  )
  for (const [topic, file, lines] of [
    ['title-count', 'counts.csv', ['titleId,observedAt,online', ...counts]],
    ['leaderboard', 'boards.ndjson', boards.map((row) => JSON.stringify(row))],
    ['leaderboard-entry', 'entries.ndjson', entries.map((row) => JSON.stringify(row))]
  ] as const) {
    await writeFile(join(directory, file), `${lines.join('\n')}\n`)
    await gamenetJson(environment, ['import', topic, join(directory, file)])
  }
}

type Edit = readonly [table: string, values: string, where: string]

const NEWEST = '18446744073709551615'

/** A count of the first day, the entries of a board and the record of another one. */
const EDITS: readonly Edit[] = [
  [
    'title_count',
    `4242 AS online, ${NEWEST} AS position`,
    `title_id = '${TITLES[0]}' AND ts < toDateTime('${FIRST_DAY} 01:00:00')`
  ],
  ['title_count_day', `4242 AS max, ${NEWEST} AS position`, `title_id = '${TITLES[0]}' AND day = '${FIRST_DAY}'`],
  ['leaderboard_entry', `'77' AS rating, ${NEWEST} AS version`, `leaderboard_id = 1 AND player = 'Player 3'`],
  ['player_entry', `'77' AS rating, ${NEWEST} AS version`, `leaderboard_id = 1 AND player = 'Player 3'`],
  ['leaderboard_entry', '', `leaderboard_id = 4 AND player = 'Player 4'`],
  ['player_entry', '', `leaderboard_id = 4 AND player = 'Player 4'`],
  ['record_history', '', 'leaderboard_id = 4']
]

/** Changes rows of a stopped service; without values, removes them. */
async function edit(directory: string, edits: readonly Edit[]): Promise<void> {
  await execute(
    directory,
    edits.map(([table, values, where]) =>
      values === ''
        ? `DELETE FROM ${table}__0 WHERE ${where}`
        : `INSERT INTO ${table}__0 SELECT * REPLACE (${values}) FROM ${table}__0 WHERE ${where}`
    )
  )
}

/** Runs statements on the tables of a stopped service. */
async function execute(directory: string, statements: readonly string[]): Promise<void> {
  const tables = await openChdb({ path: join(directory, 'data', 'tables') })
  for (const statement of statements) await tables.control.execute(statement)
  await tables.close()
}

/** Runs work while the clock of this process, and so of the service, stands still: answers change with it. */
async function at<Result>(nowMs: number, work: () => Promise<Result>): Promise<Result> {
  const { now } = Date
  Date.now = () => nowMs
  try {
    return await work()
  } finally {
    Date.now = now
  }
}

async function bodiesOf(apiUrl: string, urls: Iterable<string>): Promise<ReadonlyMap<string, string>> {
  const bodies = new Map<string, string>()
  for (const url of urls) bodies.set(url, (await ask(apiUrl + url)).text)
  return bodies
}

test('a preview names each answer that a swap changes, and no other one', async (t) => {
  const directory = t.testdir({})
  const environment: Environment = {
    DATA_DIR: join(directory, 'data'),
    ...ON_REQUEST,
    ...(await plainWrites(t))
  }
  const first = await openGamenet(t, environment)
  await importAll(environment, directory)
  await first.stop()
  await edit(directory, EDITS)
  const service = await openGamenet(t, environment)
  for (const projection of ['title-count', 'leaderboard-history']) {
    await t.test(projection, (t) => namesEach(t, { environment, projection, directory, ...service }))
  }
  await t.test('as text, as CSV and by the route of operators', (t) => prints(t, environment, service.operatorUrl))
  const opened = t
  let last = service
  await t.test('a swap needs no more than was previewed, but for later events', async (t) => {
    const file = await refusesExpected(t, environment, directory)
    await service.stop()
    await edit(directory, [
      ['leaderboard_entry', `'78' AS rating, ${NEWEST} AS version`, `leaderboard_id = 2 AND player = 'Player 5'`]
    ])
    // For the refusals, too: without a service, each of their commands would open the engines.
    last = await openGamenet(opened, environment)
    await expects(t, environment, { file, directory })
  })
  await t.test('an impossible preview is refused with a sentence', (t) => refuses(t, environment))
  await t.test('so is one of outdated tables, and one on a low disk', async (t) => {
    await last.stop()
    await execute(directory, [
      "INSERT INTO generation_statement (name, generation, version) VALUES ('network-count', 0, 0)"
    ])
    last = await openGamenet(t, environment)
    // The service rebuilds them by itself.
    const outdated = await gamenet(environment, ['rebuild', 'preview', 'network-count'])
    t.equal(outdated.code, 1)
    t.match(outdated.stderr, /is outdated \(|cannot be previewed|There is no rebuild of .* under way/)
    await last.stop()
    const { bavail, bsize } = await statfs(directory)
    const low = { ...environment, DISK_FREE_MIN_BYTES: String(2 * bavail * bsize) }
    await openGamenet(t, low)
    const refused = await gamenet(low, ['rebuild', 'preview', 'network-count'])
    t.equal(refused.code, 1)
    t.match(refused.stderr, /^The rebuild of network-count is refused: the disk of .* free .*DISK_FREE_MIN_BYTES/)
  })
})

async function namesEach(
  t: Test,
  given: { environment: Environment; projection: string; directory: string; apiUrl: string }
): Promise<void> {
  const { environment, projection, directory, apiUrl } = given
  await gamenetJson(environment, ['rebuild', 'start', projection, '--follow'])
  const nowMs = Date.now()
  const preview = await at(nowMs, async () =>
    Preview.parse(await gamenetJson(environment, ['rebuild', 'preview', projection]))
  )
  t.ok(preview.isComplete)
  const named = preview.answers.map(({ url }) => url)
  const urls = new Set([...named, ...sampled()])
  const before = await at(nowMs, () => bodiesOf(apiUrl, urls))
  const file = join(directory, `${projection}.json`)
  await writeFile(file, JSON.stringify(preview))
  SwapReport.parse(await gamenetJson(environment, ['rebuild', 'swap', projection, '--expect', file]))
  const after = await at(nowMs, () => bodiesOf(apiUrl, urls))
  const changed = [...urls].filter((url) => before.get(url) !== after.get(url))
  t.comment(`${projection}: ${changed.length} of ${urls.size} answers changed; ${preview.compared} were compared`)
  t.ok(changed.length > 5)
  t.same([...named].sort(), changed.sort())
}

async function prints(t: Test, environment: Environment, operatorUrl: string): Promise<void> {
  await gamenetJson(environment, ['rebuild', 'rollback', 'leaderboard-history'])
  await gamenetJson(environment, ['rebuild', 'start', 'leaderboard-history', '--follow'])
  const preview = ['rebuild', 'preview', 'leaderboard-history']
  const text = await gamenet(environment, preview)
  t.match(text.stdout, /^The swap of rebuild \d+ of leaderboard-history changes \d+ answers of the \d+ that read rows/)
  t.match(text.stdout, /^RECORDS +RANKS +PEAKS +UNLOCKS +OTHERS +ANSWER\n[1-9]/m, 'the change of a record is first')
  t.match(text.stdout, /^leaderboard_entry +1 +title_id "\w+", leaderboard_id 1, player "Player 3"$/m)
  const csv = await gamenet(environment, [...preview, '--csv'])
  t.match(csv.stdout, /^endpoint,key,url,records,ranks,peaks,unlocks,others\n/)
  t.match(csv.stdout, /^getPlayer,"Player 3","\/api\/player\/Player%203",0,\d+,0,0,\d+$/m)
  const board = `${titleOf(1)}/1`
  const route = `${operatorUrl}/rebuilds/leaderboard-history/preview?key=${encodeURIComponent(board)}`
  const answered = await fetch(route, { method: 'POST', headers: AUTHORIZED })
  const { key, subjects } = Preview.parse(await answered.json())
  t.equal(key, board)
  const unknown = await gamenet(environment, [...preview, '--key', '4d530064/999999'])
  t.equal(unknown.code, 2)
  t.match(unknown.stderr, /^There is no event and no row of 4d530064\/999999 in event_leaderboard_entry, /)
  t.ok(subjects.length > 0 && subjects.every((each) => each.key.leaderboard_id === 1), 'only rows of the key')
}

const HISTORY = 'leaderboard-history'

/** Returns the file of a preview. */
async function refusesExpected(t: Test, environment: Environment, directory: string): Promise<string> {
  const fileOf = async (name: string, content: unknown) => {
    await writeFile(join(directory, name), JSON.stringify(content))
    return join(directory, name)
  }
  const preview = Preview.parse(await gamenetJson(environment, ['rebuild', 'preview', HISTORY]))
  const { rebuild, subjects } = preview
  const elsewhere = { ...preview, rebuild: { ...rebuild, startedAt: '2020-01-01T00:00:00.000Z' } }
  for (const [file, code, sentence] of [
    [join(directory, 'missing.json'), 2, /missing\.json of --expect cannot be read \(ENOENT\)/],
    [await fileOf('none.json', { rebuild: 1 }), 2, /--expect is not a preview \(✖ expected .* → at rebuild\)/],
    [join(directory, 'title-count.json'), 2, /is of rebuild 1 of title-count, .*; rebuild \d+ of leaderboard-history/],
    [await fileOf('elsewhere.json', elsewhere), 2, /begun at 2020-01-01.*; rebuild \d+ of .* was begun at/],
    [await fileOf('key.json', { ...preview, key: '4d530064/1' }), 2, /is of 4d530064\/1 only/],
    [await fileOf('part.json', { ...preview, subjects: [] }), 1, /lists 0 of \d+ subjects/],
    [
      await fileOf('fewer.json', { ...preview, subjects: subjects.slice(1), subjectCount: subjects.length - 1 }),
      1,
      /Rows of 1 /
    ]
  ] as const) {
    const done = await gamenet(environment, ['rebuild', 'swap', HISTORY, '--expect', file])
    t.equal(done.code, code, file)
    t.match(done.stderr, sentence)
  }
  return await fileOf('preview.json', preview)
}

async function expects(
  t: Test,
  environment: Environment,
  { file, directory }: { readonly file: string; readonly directory: string }
): Promise<void> {
  const swap = ['rebuild', 'swap', HISTORY, '--expect', file]
  const refused = await gamenet(environment, swap)
  t.equal(refused.code, 1)
  t.match(
    refused.stderr,
    /Rows of 1 subjects differ that the preview .*leaderboard_entry .*"leaderboard_id":2,"player"/
  )
  const entry = {
    titleId: titleOf(2),
    leaderboardId: 2,
    playerName: 'Player 9',
    changeType: 'new',
    rank: 99,
    rating: '1'
  }
  const late = join(directory, 'late.ndjson')
  await writeFile(late, `${JSON.stringify({ ...entry, changedAt: instantOf(FIRST_MS + DAY_MS) })}\n`)
  await gamenetJson(environment, ['import', 'leaderboard-entry', late])
  t.match(await gamenetJson(environment, swap), { id: Number }, 'data arrived on that board')
}

async function refuses(t: Test, environment: Environment): Promise<void> {
  await gamenetJson(environment, ['rebuild', 'start', 'network-count', '--follow'])
  await gamenetJson(environment, ['rebuild', 'start', 'leaderboard-history', '--until', '5', '--follow'])
  for (const [args, code, sentence] of [
    [['title-cuont'], 2, /There is no projection "title-cuont"; there are .*title-count/],
    [['title-count'], 1, /There is no rebuild of title-count under way\. Its last rebuild, \d+, serves already/],
    [['leaderboard-history'], 1, /ends at 5 and cannot be swapped in.* Start one without --until/],
    [['network-count', '--key', '4d530064'], 2, /Rows of network-count.* cannot be corrected by a title or a board/],
    [['network-count', '--csv', '--json'], 2, /--csv.*--json/]
  ] as const) {
    const done = await gamenet(environment, ['rebuild', 'preview', ...args])
    t.equal(done.code, code, args.join(' '))
    t.match(done.stderr, sentence)
  }
  const { stdout } = await gamenet(environment, ['rebuild', 'preview', 'network-count'])
  t.match(stdout, /^No row differs, so the swap of rebuild \d+ of network-count changes no answer\.\n$/)
}
