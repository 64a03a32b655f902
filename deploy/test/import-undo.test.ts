import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { instantOf } from '@gamenet/schemas'
import fc from 'fast-check'
import { test } from 'tap'
import { z } from 'zod'
import type { ImportRun } from '../src/operator/operations.js'
import { operatorClient } from '../src/operator/operator-client.js'
import { type Environment, gamenet, gamenetJson, type Running, spawnGamenet, startGamenet } from './service/gamenet.js'

const DAY = Date.UTC(2026, 2, 14)
/** So many that an import of them is cut off on its way. */
const CUT_OFF_ROWS = 1_000_000
const ENTRIES = ['Ann', 'Bob', 'Cid', 'Dan']
const Imported = z.array(z.object({ importId: z.string(), published: z.int(), alreadyDone: z.boolean() }))
const Listed = z.array(
  z.object({
    importId: z.string(),
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

/** Begins an import, and kills the service when a part of it is published; what was told of it before. */
async function cutOff(service: Running, fromMs: number): Promise<ImportRun | undefined> {
  const rows = Array.from({ length: CUT_OFF_ROWS }, (_, n) => `4d530064,${instantOf(fromMs + n * 100)},88888\n`)
  const request = { topic: 'title-count', file: 'cut-off.csv', columns: {}, set: {}, strict: false }
  const content = Readable.from([Buffer.from(['titleId,observedAt,online\n', ...rows].join(''))])
  const operations = operatorClient(service.operatorUrl)
  const lookAndKill = async () => {
    const runs = await operations.imports()
    await service.kill()
    return runs.find(({ file }) => file === request.file)
  }
  let killed: Promise<ImportRun | undefined> | undefined
  const onProgress = ({ published }: { published: number }) => {
    if (published > CUT_OFF_ROWS / 10) killed ??= lookAndKill()
  }
  await operations.import(request, content, onProgress).catch(() => undefined)
  return await killed
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

test('an import that is taken back leaves every answer as if it had not been, however often and over restarts', async (t) => {
  const directory = t.testdir({})
  const environment = scrapingNothing(join(directory, 'data'))
  let service = await startGamenet(environment)
  t.teardown(() => service.kill())
  const answers = async () => {
    const all: Record<string, unknown> = {}
    for (const question of QUESTIONS) {
      const response = await fetch(`${service.apiUrl}${question}`)
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

  await fc.assert(
    fc.asyncProperty(Counts, Counts, Entries, Entries, async (counts, badCounts, entries, badEntries) => {
      await importFile('title-count', countsCsv(counts))
      await importFile('leaderboard-entry', entriesCsv(entries))
      const before = await answers()
      const bad = [
        await importFile('title-count', `${countsCsv(badCounts)}4d530064,2026-03-14T10:00:00Z,99999\n`),
        await importFile(
          'leaderboard-entry',
          `${entriesCsv(badEntries)}4d530064,7,Eve,updated,1000,2026-03-14T10:00:00Z\n`
        )
      ]
      t.notSame(await answers(), before, 'the bad files are seen')
      for (const { importId } of bad) t.match(await undo(importId), { importId, alreadyDone: false })
      t.same(await answers(), before, 'and then they were never there')
      for (const { importId } of bad) t.match(await undo(importId), { importId, alreadyDone: true })
    }),
    { numRuns: 1 }
  )

  const before = await answers()
  const text = `${countsCsv([{ minute: 5, online: 77_777 }])}`
  const first = await importFile('title-count', text)
  await undo(first.importId)
  const again = await importFile('title-count', text)
  t.not(again.importId, first.importId, 'the same file imported again is another import')
  t.equal(again.published, 1)
  t.notSame(await answers(), before)
  await gamenetJson(environment, ['rebuild', 'start', 'title-count', '--follow'])
  const hindered = await gamenet(environment, ['import', 'undo', again.importId])
  t.equal(hindered.code, 1)
  t.match(hindered.stderr, /Rebuild \d+ of title-count is filled .*Then: gamenet import undo/)
  t.same(await stateOf(again.importId), { isRetracted: false, isBeingRetracted: false }, 'and nothing was done')
  await gamenetJson(environment, ['rebuild', 'cancel', 'title-count'])
  t.match(await Promise.all([undo(again.importId), undo(again.importId)]), [{}, {}], 'twice at once')
  t.same(await answers(), before)
  t.same(await stateOf(again.importId), { isRetracted: true, isBeingRetracted: false })

  const third = await importFile('title-count', text)
  for (const step of [['start', '--follow'], ['verify'], ['swap']]) {
    await gamenetJson(environment, ['rebuild', step[0] ?? '', 'title-count', ...step.slice(1)])
  }
  await undo(third.importId)
  const back = await gamenet(environment, ['rebuild', 'rollback', 'title-count'])
  t.equal(back.code, 1, 'nobody goes back to tables that hold it')
  t.match(back.stderr, /There are no old tables of title-count to go back to/)
  t.same(await answers(), before)

  const published = await cutOff(service, DAY)
  // While much is loaded, what the tables know of an import may come late.
  if (published === undefined) t.comment('it was not listed yet')
  else t.match(published, { isBeingPublished: true, finished: false })
  service = await startGamenet(environment)
  await gamenetJson(environment, ['status', '--wait', '180'])
  const [half] = Listed.parse(await gamenetJson(environment, ['import', 'list']))
  t.match(half, { finished: false, isBeingPublished: false, retractedAt: null })
  t.notSame(await answers(), before, 'half of it is seen')
  t.match(await undo(half?.importId ?? ''), { alreadyDone: false })
  t.same(await answers(), before, 'and then none of it')
  t.match(await undo(half?.importId ?? ''), { alreadyDone: true })

  await service.stop()
  service = await startGamenet(environment)
  t.same(await answers(), before, 'after a restart too')
  const listed = Listed.parse(await gamenetJson(environment, ['import', 'list']))
  t.ok(
    listed.some(({ importId, retractedAt }) => importId === first.importId && retractedAt !== null),
    'the list says so'
  )
  const unknown = await gamenet(environment, ['import', 'undo', 'f'.repeat(32)])
  t.equal(unknown.code, 2)
  t.match(unknown.stderr, /There is no import .*gamenet import list/)
  await gamenetJson(environment, ['rebuild', 'start', 'title-count', '--from-log', '--follow'])
  const verified = await gamenet(environment, ['rebuild', 'verify', 'title-count'])
  t.equal(verified.code, 0, `and a reload from the log brings nothing back: ${verified.stdout}`)
  t.equal(await service.stop(), 0)
})

test('an import ends with its command, is not begun twice at a time, and is taken back or gone on with then', async (t) => {
  const directory = t.testdir({})
  const environment = scrapingNothing(join(directory, 'data'))
  const service = await startGamenet(environment)
  t.teardown(() => service.kill())
  const { imports } = operatorClient(service.operatorUrl)
  const file = join(directory, 'long.csv')
  const rows = Array.from({ length: CUT_OFF_ROWS }, (_, n) => `4d530064,${instantOf(DAY + n * 100)},5\n`)
  await writeFile(file, ['titleId,observedAt,online\n', ...rows].join(''))
  const args = ['import', 'title-count', file, '--no-wait']
  const command = spawnGamenet(environment, args)
  const ended = once(command, 'exit')
  command.stderr?.resume()
  const run = async (isSo: (run: ImportRun) => boolean) => {
    for (;;) {
      const [first] = await imports()
      if (first !== undefined && isSo(first)) return first
      await setImmediate()
    }
  }
  const { importId } = await run(({ isBeingPublished }) => isBeingPublished)
  const second = await gamenet(environment, args)
  t.match(second, { code: 1, stderr: new RegExp(`long.csv is being imported already, as ${importId}`) })
  t.match(await gamenet(environment, ['import', 'undo', importId]), { code: 1, stderr: /end its command first/ })
  command.kill('SIGKILL')
  await ended
  t.match(await run(({ isBeingPublished }) => !isBeingPublished), { importId, finished: false })
  t.match(await gamenetJson(environment, args), [{ importId, finished: true, rowsRead: CUT_OFF_ROWS }])
  t.match(await gamenetJson(environment, ['import', 'undo', importId]), { importId, alreadyDone: false })
  t.equal(await service.stop(), 0)
})
