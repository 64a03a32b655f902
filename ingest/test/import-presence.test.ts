import { deepEqual, doesNotMatch, equal, ok } from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runs } from '@gamenet/engines/testing'
import { decodeEvent, nameKey, presenceTopic, type Seal } from '@gamenet/schemas'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { type ImportRequest, importInWorker, type People, runImport } from '../src/index.js'
import { anyWriting, written } from './import-files.js'
import { memoryLog } from './import-log.js'

const NOW = Date.UTC(2026, 2, 1)
const HEADER = 'username,gamertag,state,game,periodSeconds,observedAt'
const AT = '2020-01-01T00:00:00Z'

/** Every user has a seal except the erased ones. */
function memoryPeople(erased: readonly string[] = []) {
  const seals = new Map<string, Seal>()
  const passed: number[] = []
  const people: People = {
    async seals(usernames) {
      const asked = [...new Set([...usernames].map(nameKey))].filter((key) => !erased.includes(key))
      for (const key of asked) {
        const id = seals.size + 1
        if (!seals.has(key)) seals.set(key, { id, key: new Uint8Array(32).fill(id) })
      }
      return new Map([...seals].filter(([key]) => asked.includes(key)))
    },
    passedOver: (_, events) => passed.push(events)
  }
  const keyOf = (id: number) => [...seals.values()].find((seal) => seal.id === id)?.key
  return { people, passed, keyOf }
}

async function importText(
  t: Pick<Test, 'testdir'>,
  content: string | Buffer,
  given: Partial<ImportRequest> = {},
  { log = memoryLog(), world = memoryPeople(), run = runImport as typeof importInWorker } = {}
) {
  const input = join(t.testdir(), 'input')
  await writeFile(input, content)
  const request = { topic: 'presence', fileName: 'sightings', input, ...given }
  const result = await run(request, { log, people: world.people, known: log.known, ...{ now: () => NOW } })
  const sightings = log.of('presence').map((message, offset) => {
    const decoded = decodeEvent(presenceTopic, { offset, ...message }, world.keyOf)
    if (!decoded.ok) throw new Error('a sighting cannot be read')
    return decoded.event
  })
  return { result, log, sightings }
}

test('sightings are read with missing values, and names as a page shows them', async (t) => {
  const lines = [
    'Ann,Tag One,online,Halo  2,600,2020-01-01 00:00:00',
    ' ann ,,offline,,,2020-01-01T00:00:00Z',
    'Bob,,online,,86400,1577836800',
    'Bob,,,Halo 2,60,2020-01-01 00:00:00'
  ]
  const { result, sightings } = await importText(t, [HEADER, ...lines].join('\n'))
  t.same(sightings, [
    { username: 'Ann', gamertag: 'Tag One', state: 'online', game: 'Halo 2', periodSeconds: 600, observedAt: AT },
    { username: 'ann', state: 'offline', periodSeconds: 60, observedAt: AT },
    { username: 'Bob', state: 'online', periodSeconds: 86_400, observedAt: AT }
  ])
  t.match(result, { rowsRead: 4, published: 3, missing: 1, rejected: 0, finished: true })
})

test('a bad sighting is reported with its line and reason', async (t) => {
  const lines: [string, RegExp | undefined][] = [
    ['Ann,,online,Halo,60,2020-01-01', undefined],
    [',,online,Halo,60,2020-01-01', /username is missing/],
    [`${'a'.repeat(65)},,online,Halo,60,2020-01-01`, /username is .*expected 1 to 64 characters/],
    ['A\u200bnn,,online,Halo,60,2020-01-01', /username is .*without control or format characters/],
    ['Ann,,away,Halo,60,2020-01-01', /state is "away"/],
    ['Ann,,Online,Halo,60,2020-01-01', /state is "Online"/],
    ['Ann,,online,Halo,0,2020-01-01', /periodSeconds is 0/],
    ['Ann,,online,Halo,86401,2020-01-01', /periodSeconds is 86401/],
    ['Ann,,online,Halo,1.5,2020-01-01', /periodSeconds is "1.5"/],
    [`Ann,,online,${'g'.repeat(201)},60,2020-01-01`, /game is /],
    [`Ann,${'g'.repeat(201)},online,Halo,60,2020-01-01`, /gamertag is /],
    ['Ann,,online,Halo,60,', /observedAt is missing/],
    ['Ann,,online,Halo,60,2020-02-30', /there is no day/],
    ['Ann,,online,Halo,60,2026-03-01 00:01:01', /more than a minute in the future/]
  ]
  const { result, sightings } = await importText(t, [HEADER, ...lines.map(([line]) => line)].join('\n'))
  t.equal(sightings.length, 1)
  const bad = lines.flatMap(([, reason], n) => (reason === undefined ? [] : [{ line: n + 2, reason }]))
  t.match(result.faults, bad)
  t.equal(result.rejected, bad.length)
})

test('a file needs a state and an instant, from columns or from constants', async (t) => {
  await t.rejects(importText(t, 'username,observedAt\nAnn,2020-01-01\n'), /takes state from the column/)
  await t.rejects(importText(t, 'username,state\nAnn,online\n'), /takes observedAt from the column/)
  const { sightings } = await importText(t, 'username\nAnn\n', { set: { state: 'offline', observedAt: AT } })
  t.same(sightings, [{ username: 'Ann', state: 'offline', periodSeconds: 60, observedAt: AT }])
})

test('whatever the format of a file, its thread publishes the same sightings sealed, and none of erased users', async (t) => {
  const columns = HEADER.split(',')
  const rows = Array.from({ length: 40 }, (_, n) => ({
    username: ['Ann', 'Bob', 'Eve'][n % 3],
    gamertag: 'Tag, "One"',
    state: n % 5 === 0 ? 'offline' : 'online',
    game: 'Halo: Combat, "2"',
    periodSeconds: 600,
    observedAt: new Date(Date.UTC(2020, 0, 1) + n * 600_000).toISOString().replace('.000', '')
  }))
  const expected = rows.filter(({ username }) => username !== 'Eve')
  await fc.assert(
    fc.asyncProperty(anyWriting, async (writing) => {
      const world = memoryPeople(['eve'])
      const { result, log, sightings } = await importText(
        t,
        written(rows, columns, writing),
        {},
        { world, run: importInWorker }
      )
      deepEqual(sightings, expected)
      ok(t.match(result, { rowsRead: 40, published: expected.length, missing: 40 - expected.length }))
      // Base64 may spell `ann` by chance, so sealed values are searched as bytes.
      const bytes: Buffer[] = []
      const readable = JSON.stringify(log.of('presence')).replace(/1\.([\w-]{40,})/g, (_, sealed: string) => {
        bytes.push(Buffer.from(sealed, 'base64url'))
        return ''
      })
      equal(bytes.length, expected.length)
      doesNotMatch(readable, /ann|bob|tag|halo/i)
      doesNotMatch(Buffer.concat(bytes).toString('latin1'), /username|tag, |halo/i)
    }),
    runs(3)
  )
})
