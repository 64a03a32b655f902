import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { instantOf } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { importInWorker, runImport } from '../src/index.js'
import { memoryLog } from './import-log.js'

/** Recorded data next to the project. The same facts are also tested with generated data of the same shape. */
const DATA = fileURLToPath(new URL('../../../../shared/data/', import.meta.url))
const HOUR_MS = 3_600_000
const MAPPING = { observedAt: 'Timestamp', online: 'Peak Player Count' }

function recorded(name: string, body: (t: Test, path: string) => Promise<void>): void {
  const path = join(DATA, name)
  const skip = existsSync(path) ? false : `${path} is not there: the recorded data was NOT tested`
  test(`recorded data: ${name}`, { skip }, (t) => body(t, path))
}

type NetworkEvent = { readonly observedAt: string; readonly online: number }

recorded('online-hourly-2017-2026.csv.gz', async (t, input) => {
  const log = memoryLog()
  const request = { topic: 'network-count', input, fileName: 'online-hourly-2017-2026.csv.gz', columns: MAPPING }
  t.match(await importInWorker(request, { log, known: log.known }), {
    rowsRead: 79_506,
    missing: 221,
    published: 79_285,
    rejected: 0
  })
  const events = log.events('network-count') as NetworkEvent[]
  t.equal(
    events.reduce((most, { online }) => Math.max(most, online), 0),
    216_762
  )
  t.equal(events.filter(({ online }) => online === 0).length, 111)
  t.same(
    [events[0], events.at(-1)],
    [
      { observedAt: '2017-02-17T06:00:00Z', online: 9234 },
      { observedAt: '2026-03-14T23:00:00Z', online: 34_712 }
    ]
  )
  const appends = log.appends.length
  t.match(await importInWorker(request, { log, known: log.known }), { alreadyDone: true, missing: 221 })
  t.equal(log.appends.length, appends)
})

recorded('titles.jsonl.gz', async (t, input) => {
  const log = memoryLog()
  const request = { topic: 'title', input, fileName: 'titles.jsonl.gz', set: { observedAt: '2026-01-01' } }
  t.match(await runImport(request, { log, known: log.known }), { rowsRead: 1162, published: 1162, rejected: 0 })
  const events = log.events('title') as { name: string; releaseDate?: string }[]
  t.equal(events.filter((event) => !('releaseDate' in event)).length, 328)
  const names = events.map(({ name }) => name)
  t.equal(names.filter((name) => names.indexOf(name) !== names.lastIndexOf(name)).length, 189)
  const { set: _, ...without } = request
  await t.rejects(
    runImport(without, { log, known: log.known }),
    /takes observedAt from .*the first rows have "titleId", "name"/
  )
})

recorded('network-games.json', async (t, input) => {
  const log = memoryLog()
  const request = { topic: 'title', input, fileName: 'network-games.json', set: { observedAt: '2026-07-20' } }
  t.match(await runImport(request, { log, known: log.known, now: () => Date.UTC(2026, 6, 20) }), {
    published: 199,
    rejected: 0
  })
})

test('an hourly history with empty hours, hours of zero and missing days is imported as it is', async (t) => {
  const input = join(t.testdir(), 'history.csv.gz')
  const start = Date.UTC(2017, 1, 17, 6)
  const hours = Array.from({ length: 20_000 }, (_, n) => ({ ms: start + n * HOUR_MS, online: (n * 7919) % 200_003, n }))
    .filter(({ n }) => n < 5000 || n >= 5144)
    .map(({ ms, online, n }) => ({ ms, online: n % 97 === 0 ? undefined : n % 89 === 0 ? 0 : online }))
  const rows = hours.map(({ ms, online }) => `${instantOf(ms).slice(0, 19).replace('T', ' ')},${online ?? ''}`)
  await writeFile(input, gzipSync(['Timestamp,Peak Player Count', ...rows, ''].join('\n')))
  const log = memoryLog()
  const result = await importInWorker(
    { topic: 'network-count', input, fileName: 'history.csv.gz', columns: MAPPING },
    { log, known: log.known }
  )
  const samples = hours.filter(({ online }) => online !== undefined)
  t.match(result, {
    rowsRead: hours.length,
    missing: hours.length - samples.length,
    published: samples.length,
    rejected: 0
  })
  t.same(
    log.events('network-count'),
    samples.map(({ ms, online }) => ({ observedAt: instantOf(ms), online }))
  )
})

test('a catalogue without times and with unknown dates is imported with a constant time', async (t) => {
  const input = join(t.testdir(), 'titles.jsonl.gz')
  const titles = Array.from({ length: 500 }, (_, n) => ({
    titleId: n.toString(16).padStart(8, '0').toUpperCase(),
    name: `${['AC/DC', 'R&D #', "Sid's: One", 'A+B']}${n % 450}`,
    publisher: n % 5 === 0 ? '' : 'Somebody',
    releaseDate: n % 3 === 0 ? null : '2002-03-14'
  }))
  await writeFile(input, gzipSync(titles.map((title) => JSON.stringify(title)).join('\n')))
  const log = memoryLog()
  const request = { topic: 'title', input, fileName: 'titles.jsonl.gz', set: { observedAt: '2026-01-01' } }
  t.match(await runImport(request, { log, known: log.known }), { published: 500, rejected: 0 })
  t.same(
    log.events('title'),
    titles.map(({ titleId, name, publisher, releaseDate }) => ({
      titleId: titleId.toLowerCase(),
      observedAt: '2026-01-01T00:00:00Z',
      name,
      ...(publisher === '' ? {} : { publisher }),
      ...(releaseDate === null ? {} : { releaseDate })
    }))
  )
})
