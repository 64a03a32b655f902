import { rejects } from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { cp, mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { openEmbeddedLog } from '@gamenet/engines/log'
import { until } from '@gamenet/engines/testing'
import { projections } from '@gamenet/projector'
import { nameKey } from '@gamenet/schemas'
import fc from 'fast-check'
import type { Test } from 'tap'
import { z } from 'zod'
import { claimDataDirectory } from '../../src/data-directory/data-directory.js'
import { readManifest } from '../../src/operate/backup/manifest.js'
import { backup } from '../../src/operate/backup/operation.js'
import { importFile } from '../../src/operate/import/operation.js'
import { listImports, undoImport } from '../../src/operate/import/undo-operation.js'
import type { Operations } from '../../src/operate/operation.js'
import { rebuild } from '../../src/operate/rebuild/operation.js'
import { restore } from '../../src/operate/restore/restore.js'
import { scrape } from '../../src/operate/scrape/operation.js'
import { caughtUp } from '../../src/operate/status/caught-up.js'
import { VERSIONS } from '../../src/version.js'
import { gamenet, gamenetJson, type Opened, operationsAt, type Running, spawnGamenet } from './gamenet.js'
import {
  Caller,
  openPeopleService,
  type SignedIn,
  signIn,
  startAuth,
  startPeopleService,
  storedRatings
} from './people-service.js'
import { startUpstream } from './upstream.js'

const HALO = '4d530064'
const BOARD = 3
const RATED_AT_MOST = 100
const POLL_MS = 100
/** Metrics take some 50 ms of processor time; achievements are evaluated every 5 s. */
const METRICS_POLL_MS = 500
const CAUGHT_UP_MS_MAX = 120_000
/** The contents of pages, all newer than the first scrape of this test. */
const titles = [
  { titleId: HALO, name: 'Halo 2', subtitle: '', online: 41, lobbies: { players: 12, sessions: 2 }, hasBoards: true },
  { titleId: '55530036', name: '187 Ride', subtitle: '', online: 5, lobbies: null }
]

/** The extent of a test of backups. */
export type BackupScale = {
  /** Whether all projections of a restored backup are rebuilt. */
  readonly rebuilds: boolean
  /** Where a restore is killed, as shares of its entries; without one, its leftovers are created by hand. */
  readonly restoreKills: readonly number[]
  /** Where a backup by the service, and then by the command of a stopped service, is killed. */
  readonly backupKills: readonly [service: number, command?: number]
  /** Seed of the ratings during a backup, and of the damage to one. */
  readonly seed: number
  /** Whether a service is killed and restarted after an erased user has returned. */
  readonly startsAgain: boolean
}

/** A backup of a busy service contains all acknowledged data, and answers are equal after a restore elsewhere. */
export async function provesBackups(t: Test, scale: BackupScale): Promise<void> {
  const folder = t.testdir({})
  const part = (name: string) => join(folder, name)
  const auth = await startAuth(t)
  const people = auth.people.slice(0, 6)
  const names = people.map(({ username }) => username)
  const sessions = await Promise.all(people.map((person) => signIn(auth, person)))
  const upstream = await startPages(t, names)
  const environment = { DATA_DIR: part('data') }
  const start = (name: string) => startPeopleService(part(name), auth, { UPSTREAM_URL: upstream.url })
  const service = await openPeopleService(t, part('data'), auth, { UPSTREAM_URL: upstream.url })
  const caller = new Caller(service, 8)
  t.teardown(() => caller.close())
  const operations = operationsAt(service.operatorUrl)
  await operations.run(scrape, { source: 'all' })
  const counts = { topic: 'network-count', file: 'counts.csv', columns: {}, set: {}, strict: false }
  await operations.run(importFile, { request: counts, content: Readable.from([Buffer.from(countsOfYears())]) })
  const wrong = Buffer.from('observedAt,online\n2025-02-01T00:30:00Z,99999\n')
  const { importId } = await operations.run(importFile, { request: counts, content: Readable.from([wrong]) })
  await operations.run(undoImport, { importId })
  const imports = await operations.run(listImports, {})
  t.match(imports, [{ importId, retractedAt: String }, { retractedAt: null }])

  const acknowledged = new Set<string>()
  const rating = rateUntil({ caller, sessions, names, acknowledged, seed: scale.seed })
  while (acknowledged.size < 4) await rating.next()
  const before = new Set(acknowledged)
  // The command is killed; the service continues.
  await Promise.all([
    killAt(spawnGamenet(environment, ['backup', part('busy')]), part('busy.unfinished'), { entries: 1 }),
    rating.end()
  ])
  await untilWhole(part('busy'))

  const answers = await restingAnswers(service, caller, names)
  const quiet = await gamenetJson(environment, ['backup', part('quiet')])
  t.match(quiet, { directory: part('quiet'), files: Number, bytes: Number })
  t.ok(answers.size > 30, `${answers.size} answers`)
  t.same(await shadowOf(part('data')), [], 'nothing stays frozen')
  await provesBackupRefusals(t, { operations, part })
  const [ann, ben] = [names[0] ?? '', names[1] ?? '']
  await gamenetJson(environment, ['erase', ann])
  await service.stop()

  await t.test('elsewhere, all answers are equal, although the restore was killed', async (t) => {
    await killRestores(t, part('quiet'), part('elsewhere'), scale)
    await gamenetJson({ DATA_DIR: part('elsewhere') }, ['restore', part('quiet')])
    const restored = await start('elsewhere')
    t.teardown(() => restored.kill())
    const asked = new Caller(restored, 8)
    t.teardown(() => asked.close())
    const found = await restingAnswers(restored, asked, names)
    for (const [path, body] of answers) t.same(found.get(path), body, path)
    t.same(await operationsAt(restored.operatorUrl).run(listImports, {}), imports)
    if (scale.rebuilds) {
      await rebuildAndChange(t, restored)
      for (const [path, body] of await restingAnswers(restored, asked, names)) {
        t.same(body, answers.get(path), `${path} of tables rebuilt`)
      }
    }
    const parts = { data: part('elsewhere'), target: part('second'), like: part('quiet') }
    await killBackups(t, restored, parts, scale)
  })

  await t.test(
    'a backup under load contains everything acknowledged before it, in PostgreSQL and in ClickHouse',
    async (t) => {
      await restoreHere(part('busy'), part('from-busy'))
      const log = openEmbeddedLog({ path: join(part('from-busy'), 'log') })
      t.ok(log.epoch > 1, 'events after a restore have positions of their own')
      await log.close()
      // The outbox of the copy is relayed first.
      let stored: Awaited<ReturnType<typeof storedRatings>>
      do {
        const restored = await openPeopleService(t, part('from-busy'), auth)
        await settle(restored)
        await restored.stop()
        stored = await storedRatings(part('from-busy'))
      } while (stored.outbox > 0)
      t.same(stored.tables, stored.writes)
      const kept = new Set(stored.writes.map(({ userKey, raterKey }) => `${userKey}/${raterKey}`))
      t.same(
        [...before].filter((pair) => !kept.has(pair)),
        []
      )
    }
  )

  await t.test('users erased since do not reappear; users who returned since stay', async (t) => {
    t.match(await gamenetJson({ DATA_DIR: part('later') }, ['restore', part('second'), '--ledger', part('data')]), {
      toErase: 1
    })
    const killed = scale.startsAgain ? await start('later') : undefined
    t.teardown(() => killed?.kill())
    let restored = killed ?? (await openPeopleService(t, part('later'), auth))
    let asked = new Caller(restored, 8)
    t.teardown(() => asked.close())
    t.match(await asked.ask('GET', `/api/profile/${ann}`), { status: 404 }, 'from the first answer on')
    t.match(await asked.ask('GET', `/api/profile/${ben}`), { status: 200 })
    const ofOthers = await answersOf(asked, OF_NOBODY)
    for (const [path, body] of ofOthers) t.same(body, answers.get(path), path)
    const again = await asked.ask('POST', `/api/profile/${ben}/reputation`, sessions[0], { stars: 2, comment: 'back' })
    t.match(again, { status: 200 })
    if (killed !== undefined) {
      await killed.kill()
      restored = await openPeopleService(t, part('later'), auth)
      asked = new Caller(restored, 8)
    } else await settle(restored)
    t.match(await asked.ask('GET', `/api/profile/${ann}`), { status: 200 }, 'as a new user')
    const { body } = await asked.ask('GET', `/api/profile/${ben}/reputation?feedbackLimit=30`)
    t.match(body, { feedback: [{ raterUsername: ann, stars: 2 }] })
    await restored.stop()
  })

  await t.test('a backup that cannot be restored is refused with a sentence, and leaves nothing', (t) =>
    provesRestoreRefusals(t, part, scale)
  )
}

/** Rebuilds all units from the events and swaps them in: their tables have rows, equal to the former ones. */
async function rebuildAndChange(t: Test, service: Running) {
  const operations = operationsAt(service.operatorUrl)
  const made = new Map<string, number>()
  const done = new Set<string>()
  for (const { name } of projections) {
    if (done.has(name)) continue
    const { id, unit } = await operations.run(rebuild.start, { projection: name })
    for (const each of unit) done.add(each)
    for (let state = ''; state !== 'filled'; await pause(POLL_MS)) {
      const found = (await operations.run(rebuild.list, {})).find((each) => each.id === id)
      state = found?.state ?? ''
      if (!/^fill/.test(state)) throw new Error(`the rebuild of ${name} is ${state}: ${found?.reason}`)
    }
    const report = await operations.run(rebuild.verify, { projection: name })
    t.match(report, { isEqual: true, differences: [] }, unit.join(', '))
    for (const { table, liveRows } of report.tables) made.set(table, liveRows)
    await operations.run(rebuild.swap, { projection: name })
    await operations.run(rebuild.drop, { projection: name })
  }
  t.same(
    [...made].filter(([, rows]) => rows === 0).map(([table]) => table),
    ['title_status'],
    'tables without a row: no title leaves the network'
  )
}

/**
 * Kills a process when a folder has this number of entries, or when the work ends; returns its exit code if it ended
 * before.
 */
async function killAt(
  child: ChildProcess,
  folder: string,
  { entries, filling }: { entries: number; filling?: Promise<unknown> }
): Promise<number | null> {
  const closed = once(child, 'close')
  child.stdout?.resume()
  child.stderr?.resume()
  let isOver = false
  const over = () => {
    isOver = true
  }
  void (filling ?? closed).then(over, over)
  await until(async () => isOver || (await entriesOf(folder)) >= entries, POLL_MS)
  child.kill('SIGKILL')
  await closed
  return child.exitCode
}

/** Returns the number of files and folders below a folder, which may change meanwhile. */
async function entriesOf(folder: string): Promise<number> {
  return (await readdir(folder, { recursive: true }).catch(() => [])).length
}

/** A killed restore leaves an unusable directory at any point; only the same restore resumes it. */
async function killRestores(t: Test, backup: string, data: string, { restoreKills }: BackupScale) {
  const refuses = () =>
    t.rejects(claimDataDirectory(data, VERSIONS), /half-restored backup; restore it again: gamenet restore .*quiet/)
  if (restoreKills.length === 0) {
    await cp(join(backup, 'data', 'log'), join(data, 'log'), { recursive: true })
    await truncate(join(data, 'log', 'data.mdb'), 4096)
    await writeFile(join(data, 'restoring.json'), `${backup}\n`)
    await refuses()
  }
  const wanted = await entriesOf(join(backup, 'data'))
  for (const share of restoreKills) {
    const restoring = spawnGamenet({ DATA_DIR: data }, ['restore', backup])
    const code = await killAt(restoring, data, { entries: Math.ceil(share * wanted) })
    if (code === 0) {
      await rm(data, { recursive: true })
      continue
    }
    // Killed before it had begun, it leaves nothing.
    if ((await entriesOf(data)) < 5) continue
    await refuses()
  }
}

/**
 * A service that is killed in the middle of a backup of about the size of another, then perhaps the command of a stopped one:
 * the next attempt succeeds.
 */
async function killBackups(
  t: Test,
  service: Running,
  { data, target, like }: { data: string; target: string; like: string },
  { backupKills: [first, second] }: BackupScale
) {
  const wanted = await entriesOf(like)
  const asked = operationsAt(service.operatorUrl).run(backup, { directory: target })
  await killAt(service.process, `${target}.unfinished`, { entries: Math.ceil(first * wanted), filling: asked })
  await provesNotHalf(t, target)
  if (second !== undefined) {
    const command = spawnGamenet({ DATA_DIR: data }, ['backup', target])
    await killAt(command, `${target}.unfinished`, { entries: Math.ceil(second * wanted) })
    await provesNotHalf(t, target)
  }
  await gamenetJson({ DATA_DIR: data }, ['backup', target])
  t.same(await shadowOf(data), [], 'nothing stays frozen')
  t.same((await readdir(target)).sort(), ['backup.json', 'data', 'files.ndjson'])
  t.equal(await entriesOf(`${target}.unfinished`), 0)
}

/** A backup has its name only when it is complete; this function removes it. */
async function provesNotHalf(t: Test, target: string) {
  if ((await entriesOf(target)) === 0) return
  await t.resolves(readManifest(target))
  await rm(target, { recursive: true })
}

async function untilWhole(target: string) {
  await until(async () => {
    const names = await readdir(target).catch((): string[] => [])
    return names.length > 0 && !names.includes('unfinished')
  }, POLL_MS)
}

/** Returns the frozen tables; the engine counts its freezes in a file next to them. */
const shadowOf = async (data: string) => await readdir(join(data, 'tables', 'shadow')).catch(() => [])

function restoreHere(backup: string, dataDirectory: string, ledger?: string) {
  const signal = new AbortController().signal
  return restore({ backup, dataDirectory, ledger, onProgress: () => undefined, signal })
}

async function provesBackupRefusals(
  t: Test,
  { operations, part }: { operations: Operations; part: (name: string) => string }
) {
  const backUp = (target: string) => operations.run(backup, { directory: target })
  await t.rejects(backUp(part('busy')), /is not empty/)
  const environment = { DATA_DIR: part('data') }
  t.match(await gamenet(environment, ['backup', join(part('data'), 'in')]), { code: 2, stderr: /outside it/ })
  await symlink(part('data'), part('way-in'))
  await t.rejects(backUp(join(part('way-in'), 'new', 'in')), /outside it/, 'behind a link')
  t.match(await gamenet(environment, ['export', 'log', join(part('way-in'), 'log', 'data.mdb')]), {
    code: 2,
    stderr: /outside it/
  })
  t.match(await gamenet(environment, ['export', 'log', '/dev/null']), { code: 2, stderr: /\/dev\/null is a device/ })
  const sparse = join(part('data'), 'sparse')
  await writeFile(sparse, '')
  await truncate(sparse, 2 ** 42)
  await t.rejects(backUp(part('large')), /[kMGTP]B free; this needs/)
  await rm(sparse)
  await mkdir(part('foreign.unfinished'))
  await writeFile(join(part('foreign.unfinished'), 'mine'), '')
  await t.rejects(backUp(part('foreign')), /contains something else \(mine\)/)
  await t.rejects(backUp(join(part('foreign.unfinished'), 'mine')), /is a file, or inside one/)
  await t.rejects(backUp('/proc/nobody/mine'), /^.*\/proc\/nobody cannot be created \(ENOENT\); give another directory/)
  t.match(await gamenet(environment, ['backup', '']), { code: 2, stderr: /needs a new or empty directory.*got ""/ })
  t.notOk((await readdir(part(''))).some((name) => /^large|^foreign$/.test(name)))
}

async function provesRestoreRefusals(t: Test, part: (name: string) => string, { rebuilds, seed }: BackupScale) {
  const backup = part('quiet')
  // The leftovers of a backup that was killed at its start.
  await mkdir(part('refused'))
  for (const name of ['.writable', 'format.json', 'service.json.1']) await writeFile(join(part('refused'), name), '')
  const attempt = (ledger?: string) => restoreHere(backup, part('refused'), ledger)
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
  await saying({ bytes: 2 ** 50 }, /[kMGTP]B free; this needs/)
  await saying({ sha256: '0' }, /damaged: files.ndjson/)
  await t.rejects(attempt(part('nothing')), /ledger .*nothing.* cannot be read \(ENOENT\)/)
  const sha256 = createHash('sha256').update('["a",[]]').digest('hex')
  await writeFile(part('foreign.json'), JSON.stringify({ format: 1, sha256, saltMark: 'a', entries: [] }))
  await t.rejects(attempt(part('foreign.json')), /another installation/)

  const log = join(backup, 'data', 'log', 'data.mdb')
  const bytes = await readFile(log)
  await fc.assert(
    fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
      const other = Buffer.from(bytes)
      other.writeUInt8((other[at] ?? 0) ^ change, at)
      await writeFile(log, other)
      await rejects(attempt(), /damaged: log\/data.mdb has/)
    }),
    { numRuns: rebuilds ? 3 : 1, seed }
  )
  await rm(log)
  await t.rejects(attempt(), /damaged: log\/data.mdb is missing/)
  t.same(await readdir(part('refused')), [])
  // From here on each attempt ends at its first file, instead of after copies of all files.
  await rm(join(backup, 'data'), { recursive: true })
  await t.rejects(restoreHere(backup, join(part('new'), 'below')), /damaged/)
  await t.rejects(readdir(part('new')), /ENOENT/, 'a folder that it created is deleted')
  await mkdir(part('cut-off'))
  await writeFile(join(part('cut-off'), 'restoring.json'), `${part('busy')}\n`)
  await t.rejects(restoreHere(backup, part('cut-off')), /damaged/)
  await t.rejects(claimDataDirectory(part('cut-off'), VERSIONS), /half-restored backup; restore it again.*busy/)
  await rm(file)
  await t.rejects(attempt(), /not a complete backup/)

  t.match(await gamenet({ DATA_DIR: part('half') }, ['restore', backup]), { code: 1, stderr: /not a complete backup/ })
  t.match(await gamenet({ CLICKHOUSE_URL: 'http://x', DATA_DIR: part('half') }, ['restore', part('busy')]), { code: 2 })
  await t.rejects(restoreHere(part('busy'), '/proc/nobody/data'), /directory \/proc\/nobody\/data cannot be written/)
  await t.rejects(restoreHere(part('busy'), part('data')), /is not empty/)
  await t.rejects(restoreHere(part('busy'), join(part('busy'), 'data', 'own')), /is inside the backup/)
  await symlink(part('busy'), part('way-to-busy'))
  await t.rejects(restoreHere(part('busy'), join(part('way-to-busy'), 'own')), /is inside the backup/)
  await mkdir(part('half'), { recursive: true })
  await writeFile(join(part('half'), 'restoring.json'), `${part('busy')}\n`)
  t.match(await gamenet({ DATA_DIR: part('half') }, ['status']), { code: 1, stderr: /half-restored backup/ })
}

export async function startPages(t: Test, names: readonly string[]) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  upstream.show({ registered: 21_345, online: 46, titles })
  const entries = [1, 2, 3].map((rank) => ({ rank, name: `racer ${rank}`, score: String(100 - rank) }))
  const lobbies = [{ host: 'ann', players: 8, most: 16 }]
  const times = [1, 2, 3].map((rank) => ({ rank, name: `racer ${rank}`, score: `1:0${rank}.250` }))
  const boards = [
    { leaderboardId: BOARD, name: 'Laps', entries },
    { leaderboardId: BOARD + 1, name: 'Fastest lap', entries: times }
  ]
  upstream.showGame(HALO, { lobbies, boards })
  upstream.showPlayers(names.map((username) => ({ username, gamertag: `${username} plays`, game: 'Halo 2' })))
  return upstream
}

/** An hour apart, over past days. */
export function countsOfYears(): string {
  const rows = Array.from({ length: 2000 }, (_, hour) => {
    const at = new Date(Date.UTC(2025, 1, 1) + hour * 3_600_000).toISOString()
    return `${at},${100 + ((hour * 37) % 91)}`
  })
  return `observedAt,online\n${rows.join('\n')}\n`
}

/** Users rate one another at random; `next` resolves with one more acknowledged, `end` when none is under way. */
export function rateUntil({
  caller,
  sessions,
  names,
  acknowledged,
  seed
}: {
  readonly caller: Caller
  readonly sessions: readonly SignedIn[]
  readonly names: readonly string[]
  readonly acknowledged: Set<string>
  readonly seed: number
}) {
  const pairs = fc
    .sample(
      fc.record({ by: fc.nat(names.length - 1), of: fc.nat(names.length - 1), stars: fc.integer({ min: 1, max: 5 }) }),
      { numRuns: RATED_AT_MOST, seed }
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

const BOARD_PATH = `/api/game/${HALO}/leaderboards/${BOARD}`

/** Returns every answer that is about no user, except those that contain the instant of the request. */
const OF_NOBODY = [
  ...['registered-users', 'online-24h', 'daily-online'].map((name) => `/api/network-stats/${name}?${DAYS}`),
  ...['lobbies-24h', 'activity-summary', 'top-games'].map((name) => `/api/network-stats/${name}`),
  ...['', '/history', '/stats'].map((end) => `/api/title/${HALO}/matches${end}`),
  ...['', '/records'].map((end) => BOARD_PATH + end),
  ...['/api/online-users', '/api/games', `/api/game/${HALO}`, `/api/game/${HALO}/leaderboards`],
  ...['/api/leaderboard-changes', '/api/leaderboard-changes?after=start', '/api/records/recent'],
  ...['/api/player/racer%201', '/api/player/racer%201/history', '/api/datasearch/player/racer%201'],
  ...['/api/datasearch/suggest?q=ra', `/api/title/${HALO}/online-users/history`]
]

/** Returns every public answer. */
export function pathsOf(names: readonly string[]): string[] {
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
  return [...profiles, ...['', '/leaderboard', '/recent'].map((end) => `/api/achievements${end}`), ...OF_NOBODY]
}

export async function answersOf(caller: Caller, paths: readonly string[]) {
  return new Map(await Promise.all(paths.map(async (path) => [path, atRest(await caller.ask('GET', path))] as const)))
}

/** Returns an answer without the users online, which depend on the instant of the request. */
function atRest(answer: unknown): unknown {
  const isOfTheInstant = (name: string) => name === 'lastState' || name === 'currentGame'
  return JSON.parse(JSON.stringify(answer, (name, value) => (isOfTheInstant(name) ? undefined : value)))
}

export async function settle({ operatorUrl }: Pick<Opened, 'operatorUrl'>): Promise<void> {
  const { behind } = await operationsAt(operatorUrl).run(caughtUp, { seconds: CAUGHT_UP_MS_MAX / 1000 })
  if (behind.length > 0) throw new Error(`not all can be read: ${behind.join('; ')}`)
}

/** Returns the answers when they are complete: achievements are evaluated after the tables are read. */
export async function restingAnswers(service: Pick<Opened, 'operatorUrl'>, caller: Caller, names: readonly string[]) {
  await settle(service)
  await untilEvaluated(service)
  await settle(service)
  return await answersOf(caller, pathsOf(names))
}

/** Waits until achievements are evaluated for all current rows of the tables. */
async function untilEvaluated({ operatorUrl }: Pick<Opened, 'operatorUrl'>): Promise<void> {
  const nowMs = Date.now()
  for (let evaluatedMs = 0; evaluatedMs < nowMs; await pause(METRICS_POLL_MS)) {
    const metrics = await (await fetch(`${operatorUrl}/metrics`)).text()
    const [, seconds] = /^gamenet_achievements_evaluated_timestamp_seconds (\S+)$/m.exec(metrics) ?? []
    evaluatedMs = Number(seconds) * 1000
  }
}
