import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import { gzipSync } from 'node:zlib'
import { until } from '@gamenet/engines/testing'
import { runImport } from '@gamenet/ingest'
import { instantOf, titleCountTopic } from '@gamenet/schemas'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { z } from 'zod'
import type { ImportRun } from '../src/operate/import/import-run.js'
import { importFile } from '../src/operate/import/operation.js'
import { listImports } from '../src/operate/import/undo-operation.js'
import { openLog } from '../src/stores/log.js'
import {
  type Environment,
  gamenet,
  gamenetJson,
  openGamenet,
  operationsAt,
  plainWrites,
  spawnGamenet,
  startGamenet
} from './service/gamenet.js'

const DAY = Date.UTC(2026, 2, 14)
/** Enough rows to interrupt their import; compressed, repeated rows are a small file. */
const LONG_ROWS = 20_000
const LONG_TIMES = 50
/** Two appends and a half. */
const HALF_ROWS = 5000
const SEED = 20_260_314
const ENTRIES = ['Ann', 'Bob', 'Cid', 'Dan']
const Imported = z.array(z.object({ importId: z.string(), published: z.int(), alreadyDone: z.boolean() }))
const Listed = z.array(
  z.object({
    importId: z.string(),
    file: z.string(),
    retractedAt: z.string().nullable(),
    isBeingPublished: z.boolean(),
    isBeingRetracted: z.boolean(),
    finished: z.boolean()
  })
)

/** Lines of counts of one title, some of them of the same minutes as another file's. */
const Counts = fc.array(fc.record({ minute: fc.nat(59), online: fc.nat(500) }), { minLength: 1, maxLength: 30 })
/** Lines of a board whose order is that of its times. */
const Entries = fc.array(
  fc.record({
    player: fc.constantFrom(...ENTRIES),
    minute: fc.nat(59),
    timeMs: fc.integer({ min: 60_000, max: 90_000 })
  }),
  { minLength: 1, maxLength: 12 }
)

function countsCsv(rows: readonly { minute: number; online: number }[]): string {
  const lines = rows.map(({ minute, online }) => `4d530064,${new Date(DAY + minute * 60_000).toISOString()},${online}`)
  return ['titleId,observedAt,online', ...lines, ''].join('\n')
}

function entriesCsv(rows: readonly { player: string; minute: number; timeMs: number }[]): string {
  const lines = rows.map(
    ({ player, minute, timeMs }) =>
      `4d530064,7,${player},updated,${timeMs},${new Date(DAY + minute * 60_000).toISOString()}`
  )
  return ['titleId,leaderboardId,playerName,changeType,timeMs,changedAt', ...lines, ''].join('\n')
}

const QUESTIONS = [
  '/api/title/4d530064/online-users/history?from=2026-03-14T00:00:00Z&to=2026-03-15T00:00:00Z&resolution=raw',
  '/api/title/4d530064/online-users/history?from=2026-03-14T00:00:00Z&to=2026-03-15T00:00:00Z&resolution=3600',
  '/api/network-stats/top-games?days=365',
  '/api/game/4d530064/leaderboards/7',
  '/api/leaderboard-changes?limit=500',
  '/api/datasearch/players?names=Ann,Bob,Cid,Dan',
  '/api/datasearch/time?time=1:15.000&tolerance=60000'
]

/** Counts of the network, in gzip members that are alike. */
function longFile(): Buffer {
  const rows = Array.from({ length: LONG_ROWS }, (_, n) => `${instantOf(DAY + n * 1000)},88888\n`)
  const part = gzipSync(rows.join(''))
  return Buffer.concat([gzipSync('observedAt,online\n'), ...Array.from({ length: LONG_TIMES }, () => part)])
}

/** Appends to the log of a stopped service the events of an import whose process died after its first append. */
async function importHalf(dataDirectory: string, file: string): Promise<void> {
  const log = await openLog({ engine: 'lmdb', path: join(dataDirectory, 'log'), epoch: 1 }, 'test')
  let appends = 0
  const dying: typeof log.append = async (topic, messages) => {
    if (topic === titleCountTopic.name) appends += 1
    if (appends > 1) throw new Error('the process died')
    await log.append(topic, messages)
  }
  try {
    await runImport(
      { topic: titleCountTopic.name, input: file, fileName: 'half.csv' },
      { log: { ...log, append: dying }, known: async () => undefined }
    )
    throw new Error('the import was to be cut off')
  } catch (error) {
    if (!/was interrupted .* the process died/.test(String(error))) throw error
  } finally {
    await log.close()
  }
}

function scrapingNothing(dataDirectory: string): Environment {
  return {
    DATA_DIR: dataDirectory,
    UPSTREAM_URL: 'http://127.0.0.1:9',
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0',
    SCRAPE_MATCHES_SECONDS: '0',
    SCRAPE_BOARDS_SECONDS: '0',
    SCRAPE_PLAYERS_SECONDS: '0'
  }
}

test('an undone import leaves every answer as if it had never happened, also after restarts', async (t) => {
  const directory = t.testdir({})
  const environment = { ...scrapingNothing(join(directory, 'data')), ...(await plainWrites(t)) }
  const killed = await startGamenet(environment)
  t.teardown(() => killed.kill())
  let { apiUrl } = killed
  const answers = async () => {
    const all: Record<string, unknown> = {}
    for (const question of QUESTIONS) {
      const response = await fetch(`${apiUrl}${question}`)
      all[question] = [response.status, await response.json()]
    }
    return all
  }
  const importFile = async (topic: string, text: string) => {
    const file = join(directory, 'file.csv')
    await writeFile(file, text)
    const [report] = Imported.parse(await gamenetJson(environment, ['import', topic, file]))
    if (report === undefined) throw new Error('no report')
    return report
  }
  const undo = (importId: string) => gamenetJson(environment, ['import', 'undo', importId])
  const stateOf = async (importId: string) => {
    const run = Listed.parse(await gamenetJson(environment, ['import', 'list'])).find(
      (each) => each.importId === importId
    )
    return { isRetracted: run?.retractedAt !== null, isBeingRetracted: run?.isBeingRetracted }
  }

  const [[counts = [], badCounts = []] = [], [entries = [], badEntries = []] = []] = [
    fc.sample(Counts, { numRuns: 2, seed: SEED }),
    fc.sample(Entries, { numRuns: 2, seed: SEED })
  ]
  await importFile('title-count', countsCsv(counts))
  await importFile('leaderboard-entry', entriesCsv(entries))
  const before = await answers()
  const bad = await importFile(
    'leaderboard-entry',
    `${entriesCsv(badEntries)}4d530064,7,Eve,updated,1000,2026-03-14T10:00:00Z\n`
  )
  t.notSame(await answers(), before, 'the bad file is seen')
  const known = async () => {
    const all: unknown[] = []
    for (const part of ['', '/records']) {
      const board = `${apiUrl}/api/game/4d530064/leaderboards/7${part}`
      const [now, then] = await Promise.all([fetch(board), fetch(`${board}?knownAt=${importedAt}`)])
      const { knownAt, ...body } = z.looseObject({ knownAt: z.string() }).parse(await then.json())
      all.push([knownAt, then.headers.get('etag'), JSON.stringify(body)])
      isNow = isDeepStrictEqual(body, await now.json())
    }
    return all
  }
  let isNow = false
  const importedAt = new Date().toISOString()
  const knownBefore = await known()
  t.match(knownBefore, [
    [importedAt, /./, /Eve/],
    [importedAt, /./, /Eve/]
  ])
  t.ok(isNow, 'what is known now')
  t.match(await undo(bad.importId), { importId: bad.importId, alreadyDone: false })
  t.same(await answers(), before, 'and then it was never there')
  t.same(await known(), knownBefore, 'but it was known until then')
  t.match(await undo(bad.importId), { importId: bad.importId, alreadyDone: true })

  const text = `${countsCsv(badCounts)}4d530064,2026-03-14T10:00:00Z,99999\n`
  const first = await importFile('title-count', text)
  await gamenetJson(environment, ['rebuild', 'start', 'title-count', '--follow'])
  const hindered = await gamenet(environment, ['import', 'undo', first.importId])
  t.equal(hindered.code, 1)
  t.match(hindered.stderr, /Rebuild \d+ of title-count is filled .*Then: gamenet import undo/)
  t.same(await stateOf(first.importId), { isRetracted: false, isBeingRetracted: false }, 'and nothing was done')
  await gamenetJson(environment, ['rebuild', 'verify', 'title-count'])
  await gamenetJson(environment, ['rebuild', 'swap', 'title-count'])
  t.notSame(await answers(), before)
  t.match(await Promise.all([undo(first.importId), undo(first.importId)]), [{}, {}], 'twice at once')
  t.same(await answers(), before)
  t.same(await stateOf(first.importId), { isRetracted: true, isBeingRetracted: false })
  const back = await gamenet(environment, ['rebuild', 'rollback', 'title-count'])
  t.equal(back.code, 1, 'no rollback to tables that contain it')
  t.match(back.stderr, /There are no old tables of title-count to roll back to/)
  t.same(await answers(), before)
  const again = await importFile('title-count', text)
  t.not(again.importId, first.importId, 'the same file imported again is another import')
  t.equal(again.published, first.published)
  const withIt = await answers()
  t.notSame(withIt, before)

  await provesCutOff(t, environment, directory, killed.operatorUrl, () => killed.kill())
  const halfFile = join(directory, 'half.csv')
  await writeFile(halfFile, countsCsv(Array.from({ length: HALF_ROWS }, (_, n) => ({ minute: n % 1440, online: 9 }))))
  await importHalf(environment.DATA_DIR ?? '', halfFile)
  const service = await openGamenet(t, environment)
  apiUrl = service.apiUrl
  await gamenetJson(environment, ['status', '--wait', '180'])
  const cut = Listed.parse(await gamenetJson(environment, ['import', 'list'])).filter(({ finished }) => !finished)
  t.match(cut, [
    { file: 'half.csv', isBeingPublished: false, retractedAt: null },
    { file: 'long.csv.gz', isBeingPublished: false, retractedAt: null }
  ])
  const half = cut[0]?.importId ?? ''
  t.notSame(await answers(), withIt, 'half of it is seen')
  t.match(await undo(half), { alreadyDone: false })
  t.same(await answers(), withIt, 'and then none of it')
  t.match(await undo(half), { alreadyDone: true })

  const listed = Listed.parse(await gamenetJson(environment, ['import', 'list']))
  t.ok(
    listed.some(({ importId, retractedAt }) => importId === first.importId && retractedAt !== null),
    'the list says so of what was taken back before the restart'
  )
  const unknown = await gamenet(environment, ['import', 'undo', 'f'.repeat(32)])
  t.equal(unknown.code, 2)
  t.match(unknown.stderr, /There is no import .*gamenet import list/)
})

/**
 * An import ends with its command and cannot run twice at the same time; the same command resumes it, until the service
 * is killed.
 */
async function provesCutOff(
  t: Test,
  environment: Environment,
  directory: string,
  operatorUrl: string,
  killService: () => Promise<void>
): Promise<void> {
  const operations = operationsAt(operatorUrl)
  const file = join(directory, 'long.csv.gz')
  await writeFile(file, longFile())
  const args = ['import', 'network-count', file, '--no-wait']
  const command = spawnGamenet(environment, args)
  const ended = once(command, 'exit')
  command.stderr?.resume()
  const run = async (isSo: (run: ImportRun) => boolean) => {
    let found: ImportRun | undefined
    await until(async () => {
      found = (await operations.run(listImports, {})).find((each) => each.file === 'long.csv.gz')
      return found !== undefined && isSo(found)
    })
    return found as ImportRun
  }
  const { importId } = await run(({ isBeingPublished }) => isBeingPublished)
  const second = await gamenet(environment, args)
  t.match(second, { code: 1, stderr: new RegExp(`long.csv.gz is already being imported as ${importId}`) })
  t.match(await gamenet(environment, ['import', 'undo', importId]), { code: 1, stderr: /end its command first/ })
  command.kill('SIGKILL')
  await ended
  t.match(await run(({ isBeingPublished }) => !isBeingPublished), { importId, finished: false })
  const request = { topic: 'network-count', file: 'long.csv.gz', columns: {}, set: {}, strict: false }
  const again = operations
    .run(importFile, { request, content: Readable.from([await readFile(file)]) })
    .catch((error) => String(error))
  t.match(await run(({ isBeingPublished }) => isBeingPublished), { importId, finished: false })
  await killService()
  t.match(await again, /ended the import without a report|ended before it had answered/)
}
