import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { z } from 'zod'
import type { TestService } from '../boards-service.js'
import { ask, forEach, sameList } from '../service/ask.js'
import { gamenetJson } from '../service/gamenet.js'
import { recordedFile, sharedFile } from '../service/recorded.js'

/*
 * A catalogue of titles and lists with other names; every answer is compared with a plain fold of the lists.
 */

const CatalogueTitle = z.object({
  titleId: z.string(),
  name: z.string(),
  title: z.string(),
  publisher: z.string(),
  releaseDate: z.string().nullable()
})
const NetworkGame = z.object({ titleId: z.string(), name: z.string() })

type Fact = { readonly value: string; readonly observedAt: string }
type Described = {
  readonly titleId: string
  readonly name: string
  readonly shownName: string
  readonly title: string
  readonly publisher: string
  readonly releaseDate: string
}

/**
 * A catalogue of titles and a list of games with other names are imported into a service without titles. Requests all
 * of them, or for those with a shared or a new name and some of the others.
 */
export async function provesTitles(t: Test, service: TestService, options: { isWhole: boolean }): Promise<void> {
  const { environment, directory } = service
  const path = await recordedFile(t, 'titles.jsonl.gz')
  const catalogue = gunzipSync(await readFile(path))
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => CatalogueTitle.parse(JSON.parse(line)))
  const importTitles = async (file: string, observedAt: string) =>
    z
      .array(z.unknown())
      .parse(await gamenetJson(environment, ['import', 'title', file, '--set', `observedAt=${observedAt}`]))[0]
  const facts = new Map<string, Map<string, Fact>>()
  const finds = (titles: readonly Described[], { byId }: { byId: boolean }) =>
    findsTitles(t, service, titles, { byId, asked: options.isWhole ? titles : partOf(titles) })

  await t.test('every title of the catalogue is found by id and by name', async (t) => {
    t.match(await importTitles(path, '2026-07-19T00:00:00Z'), { published: 1162, rejected: 0, ignoredColumns: [] })
    for (const title of catalogue) learn(facts, '2026-07-19', title)
    const names = countBy(catalogue.map((title) => keyOf(title.name)))
    const shared = [...names.values()].filter((count) => count > 1)
    t.equal(shared.length, 89, 'names that are shared')
    t.equal(
      shared.reduce((sum, count) => sum + count, 0),
      189,
      'by as many titles'
    )
    await finds(described(facts), { byId: true })
    const dateless = catalogue.filter((title) => title.releaseDate === null)
    t.equal(dateless.length, 328)
  })

  await t.test('a later list overrides the fields that it has', async (t) => {
    const games = await networkGames(t, catalogue, directory)
    t.match(await importTitles(games.path, '2026-07-20T00:00:00Z'), { published: games.titles.length, rejected: 0 })
    const before = new Map(catalogue.map((title) => [title.titleId, title.name]))
    const renamed = games.titles.filter(({ titleId, name }) => before.has(titleId) && before.get(titleId) !== name)
    t.equal(renamed.length, 57)
    t.match(games.titles.map(({ name }) => name).join(), /\/.*#|#.*\//s, 'names with a slash and a hash are among them')
    for (const title of games.titles) learn(facts, '2026-07-20', title)
    const titles = described(facts)
    await finds(titles, { byId: true })
    const known = new Set(titles.map((title) => keyOf(title.shownName)))
    const gone = renamed.map(({ titleId }) => before.get(titleId) ?? '').filter((name) => !known.has(keyOf(name)))
    t.ok(gone.length > 0)
    const found = new Set<number>()
    await forEach(gone, 8, async (name) => {
      found.add((await ask(`${service.running.apiUrl}/api/game/${encodeURIComponent(name)}`)).status)
    })
    t.same([...found], [404], 'the name of before names nothing')
  })

  await t.test('an earlier list that is imported last adds only unknown values', async (t) => {
    const older = catalogue.map(({ titleId, name }) => ({
      titleId,
      name: `${name} (older)`,
      publisher: 'Older',
      releaseDate: '2001-01-01'
    }))
    const file = join(directory, 'older.jsonl')
    await writeFile(file, older.map((title) => JSON.stringify(title)).join('\n'))
    t.match(await importTitles(file, '2026-07-18T00:00:00Z'), { published: older.length })
    for (const title of older) learn(facts, '2026-07-18', title)
    const titles = described(facts)
    t.equal(titles.filter((title) => title.releaseDate === '2001-01-01').length >= 328, true)
    t.same(
      titles.filter((title) => title.name.endsWith('(older)')),
      []
    )
    await finds(titles, { byId: false })
  })

  await t.test('the bare name belongs to the title with the newest count', async (t) => {
    const groups = groupsOf(described(facts))
    const counted = groups.map((ids) => ids.at(-1) ?? '')
    const file = join(directory, 'counts.csv')
    await writeFile(
      file,
      ['titleId,observedAt,online', ...counted.map((id) => `${id},2026-07-20 12:00:00,3`)].join('\n')
    )
    t.match(await gamenetJson(environment, ['import', 'title-count', file]), [{ published: groups.length }])
    const titles = described(facts, new Set(counted))
    t.equal(
      titles.filter((title) => counted.includes(title.titleId) && title.shownName === title.name).length,
      counted.length
    )
    await finds(titles, { byId: false })
  })
}

/** The recorded list of games; without it a similar one: 192 known ids, 57 of them with other names, and 7 new ones. */
async function networkGames(t: Test, catalogue: readonly z.infer<typeof CatalogueTitle>[], directory: string) {
  const recorded = await sharedFile('network-games.json')
  if (recorded !== undefined) {
    return { path: recorded, titles: z.array(NetworkGame).parse(JSON.parse(await readFile(recorded, 'utf8'))) }
  }
  t.comment('NO ../shared/data: a list of games of the same make is read')
  const known = catalogue.filter((_title, at) => at % 6 === 0).slice(0, 192)
  const titles = known.map(({ titleId, name }, at) => ({
    titleId,
    name: at < 57 ? `${name} / #${at} & it's: +` : name
  }))
  for (let at = 0; at < 7; at += 1) titles.push({ titleId: `fffe000${at}`, name: `New game ${at} / #1` })
  const path = join(directory, 'network-games.json')
  await writeFile(path, JSON.stringify(titles, null, 1))
  return { path, titles }
}

/** Copies every field that is present and not older than the known value. */
function learn(
  facts: Map<string, Map<string, Fact>>,
  observedAt: string,
  { titleId, ...fields }: { titleId: string } & Readonly<Record<string, string | null>>
): void {
  const known = facts.get(titleId) ?? new Map<string, Fact>()
  facts.set(titleId, known)
  for (const [field, value] of Object.entries(fields)) {
    if (value === null || value === '' || (known.get(field)?.observedAt ?? '') > observedAt) continue
    known.set(field, { value, observedAt })
  }
}

/** Returns every title as it must be shown; a shared name is bare for the counted title, else for the lowest id. */
function described(
  facts: ReadonlyMap<string, ReadonlyMap<string, Fact>>,
  counted: ReadonlySet<string> = new Set()
): Described[] {
  const ids = [...facts.keys()].sort((a, b) => Number(counted.has(b)) - Number(counted.has(a)) || (a < b ? -1 : 1))
  const taken = new Set<string>()
  return ids.map((titleId) => {
    const factOf = (field: string) => facts.get(titleId)?.get(field)?.value ?? ''
    const name = factOf('name')
    const isBare = !taken.has(keyOf(name))
    taken.add(keyOf(name))
    return {
      titleId,
      name,
      shownName: isBare ? name : `${name} [${titleId}]`,
      title: factOf('title'),
      publisher: factOf('publisher'),
      releaseDate: factOf('releaseDate')
    }
  })
}

/** For every name that several titles share, their ids in order. */
function groupsOf(titles: readonly Described[]): string[][] {
  const groups = new Map<string, string[]>()
  for (const { titleId, name } of titles) groups.set(keyOf(name), [...(groups.get(keyOf(name)) ?? []), titleId])
  return [...groups.values()].filter((ids) => ids.length > 1).map((ids) => ids.sort())
}

/** Those with a shared name, or a name that has to be encoded, and every twelfth of the others. */
function partOf(titles: readonly Described[]): Described[] {
  const shared = new Set(groupsOf(titles).flat())
  return titles.filter(({ titleId, name }, at) => at % 12 === 0 || shared.has(titleId) || /[/#&]/.test(name))
}

/** Requests titles by their shown name, in another case, and by id in both cases; and the list of all. */
async function findsTitles(
  t: Test,
  service: TestService,
  titles: readonly Described[],
  options: { byId: boolean; asked: readonly Described[] }
): Promise<void> {
  const wrong: unknown[] = []
  let asked = 0
  await forEach(options.asked, 16, async ({ shownName, ...title }) => {
    const wanted = JSON.stringify(Object.entries({ ...title, image: '' }).sort())
    const byId = [title.titleId, title.titleId.toUpperCase()]
    for (const key of [otherCase(shownName), ...(options.byId ? byId : [])]) {
      const { status, body } = await ask(`${service.running.apiUrl}/api/game/${encodeURIComponent(key)}`)
      asked += 1
      const found = JSON.stringify(Object.entries(z.record(z.string(), z.unknown()).parse(body)).sort())
      if (status !== 200 || found !== wanted) wrong.push({ key, status, body, wanted: title })
    }
  })
  t.same(
    wrong.slice(0, 3),
    [],
    `${asked} questions for ${options.asked.length} titles, ${wrong.length} answered wrongly`
  )
  const collator = new Intl.Collator('en')
  const names = titles.map((title) => title.shownName)
  sameList(
    t,
    z.array(z.string()).parse((await ask(`${service.running.apiUrl}/api/games`)).body),
    names.sort((a, b) => collator.compare(a, b) || Buffer.compare(Buffer.from(a), Buffer.from(b))),
    'the list of names'
  )
}

/** The name with every letter in its other case. */
export function otherCase(name: string): string {
  return Array.from(name, (letter) => {
    const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
    return other.length === letter.length ? other : letter
  }).join('')
}

function keyOf(name: string): string {
  return name.normalize('NFKC').toLowerCase()
}

function countBy(keys: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}
