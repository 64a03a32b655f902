import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual, promisify } from 'node:util'
import { poll, withTimeout } from '@gamenet/schemas'
import fc from 'fast-check'
import type { Test } from 'tap'
import { z } from 'zod'
import type { DemoAuth } from '../../demo/auth/server.js'
import { scrape } from '../../src/operate/scrape/operation.js'
import { type Status, status } from '../../src/operate/status/operation.js'
import { answersOf, pathsOf, rateUntil, restingAnswers, startPages } from './backups.js'
import { gamenetJson, launchGamenet, operationsAt, type Running, spawnedGamenet } from './gamenet.js'
import { Caller, type SignedIn, signIn, startAuth, startPeopleService } from './people-service.js'

/*
 * One stopped data directory with data of every kind, copies of it with one damaged file each, and the behaviour of a
 * service that starts on a copy.
 */

export const PARTS = ['log', 'rows', 'tables', 'writes', 'datasets', 'own'] as const
export type Part = (typeof PARTS)[number]

/** `share`: the position in the file, in [0, 1). `bit`: also the size of zeros. */
export type Damage = {
  readonly file: string
  readonly how: 'flip' | 'truncate' | 'delete' | 'zeros'
  readonly share: number
  readonly bit: number
}

/**
 * `given up`: nothing finds a page of a table of PostgreSQL that was overwritten with zeros (docs/operators/verify.md).
 */
export const OUTCOMES = ['harmless', 'refused', '503', 'status', 'verify', 'given up'] as const
/** `faults`: behaviour that no damage permits. */
export type Outcome = {
  readonly outcome: (typeof OUTCOMES)[number] | 'silent'
  readonly said: string
  readonly faults: readonly string[]
}

export type DamagedWorld = {
  readonly folder: string
  /** Directory of damaged copies: in memory if it has the space. */
  readonly copies: string
  readonly auth: DemoAuth
  readonly sessions: readonly SignedIn[]
  readonly names: readonly string[]
  readonly files: readonly string[]
}

const START_MS = 120_000
const STOP_MS = 60_000

const SILENT = { SCRAPE_MATCHES_SECONDS: '0', SCRAPE_BOARDS_SECONDS: '0' }

/** Creates the directory in `folder`, unless an earlier run has. */
export async function openDamagedWorld(t: Test, folder: string): Promise<DamagedWorld> {
  const base = join(folder, 'base')
  const auth = await startAuth(t)
  const people = auth.people.slice(0, 6)
  const names = people.map(({ username }) => username)
  const sessions = await Promise.all(people.map((person) => signIn(auth, person)))
  if (!existsSync(join(folder, 'made'))) {
    await rm(base, { recursive: true, force: true })
    const upstream = await startPages(t, names)
    const service = await startPeopleService(base, auth, { UPSTREAM_URL: upstream.url, ...SILENT })
    const caller = new Caller(service, 8)
    await operationsAt(service.operatorUrl).run(scrape, { source: 'all' })
    const counts = join(folder, 'counts.csv')
    await writeFile(counts, countsOfDays())
    await gamenetJson({ DATA_DIR: base }, ['import', 'network-count', counts])
    await rateUntil({ caller, sessions, names, acknowledged: new Set(), seed: 7 }).end()
    await gamenetJson({ DATA_DIR: base }, ['erase', names[5] ?? ''])
    await restingAnswers(service, caller, names)
    await closedDatasets(service)
    await caller.close()
    if ((await service.stop()) !== 0) throw new Error(`the service did not stop well: ${service.stderr()}`)
    await writeFile(join(folder, 'made'), '')
  }
  return { folder, copies: t.testdir({}), auth, sessions, names, files: await filesOf(base) }
}

function countsOfDays(): string {
  const rows = Array.from({ length: 2000 }, (_, hour) => {
    const at = new Date(Date.UTC(2025, 1, 1) + hour * 3_600_000).toISOString()
    return `${at},${100 + ((hour * 37) % 91)}`
  })
  return `observedAt,online\n${rows.join('\n')}\n`
}

async function filesOf(base: string): Promise<string[]> {
  const entries = await readdir(base, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size))
  return files
    .filter((_, n) => (sizes[n] ?? 0) > 0)
    .map((file) => file.slice(base.length + 1))
    .sort()
}

export function partOf(file: string): Part {
  if (file.startsWith('log/')) return 'log'
  if (file.startsWith('writes/')) return 'writes'
  if (file.startsWith('datasets/')) return 'datasets'
  if (!file.startsWith('tables/')) return 'own'
  return /\/(all|\d+)(_\d+){2,}\/|_\d+_\d+_\d+(_\d+)?\/[^/]+$/.test(file) ? 'rows' : 'tables'
}

/** Returns the damage of a case: a random file of a random part of the directory. */
export function damageOf(world: Pick<DamagedWorld, 'files'>, seed: number): Damage {
  const [drawn] = fc.sample(
    fc.record({
      part: fc.constantFrom(...PARTS),
      pick: fc.noBias(fc.nat(2 ** 30)),
      how: fc.constantFrom('flip', 'flip', 'truncate', 'delete', 'zeros'),
      share: fc.noBias(fc.nat(2 ** 30 - 1)).map((part) => part / 2 ** 30),
      bit: fc.nat(7)
    }),
    { numRuns: 1, seed }
  )
  if (drawn === undefined) throw new Error('nothing was drawn')
  const files = world.files.filter((file) => partOf(file) === drawn.part)
  const { how, share, bit } = drawn
  return { file: files[drawn.pick % files.length] ?? '', how, share, bit } as Damage
}

async function damage(directory: string, { file, how, share, bit }: Damage): Promise<void> {
  const path = join(directory, file)
  const { size } = await stat(path)
  const at = Math.floor(share * size)
  if (how === 'delete') return await rm(path)
  if (how === 'truncate') return await truncate(path, at)
  const handle = await open(path, 'r+')
  if (how === 'zeros') {
    // A block of a disk or a page of an engine.
    const block = 512 << (bit % 5)
    const from = at - (at % block)
    await handle.write(Buffer.alloc(Math.min(block, size - from)), 0, undefined, from)
    return await handle.close()
  }
  const byte = Buffer.alloc(1)
  await handle.read(byte, 0, 1, at)
  byte.writeUInt8(byte.readUInt8(0) ^ (1 << bit))
  await handle.write(byte, 0, 1, at)
  await handle.close()
}

/** Returns a copy of the directory under another name. */
async function copyOf({ folder, copies }: DamagedWorld, name: string): Promise<string> {
  const directory = join(copies, name)
  await rm(directory, { recursive: true, force: true })
  await promisify(execFile)('cp', ['-a', '--reflink=auto', join(folder, 'base'), directory])
  return directory
}

type Answers = ReadonlyMap<string, unknown>

export type RightAnswers = {
  readonly answers: readonly (readonly [path: string, answer: unknown])[]
  readonly stored: Readonly<Record<string, string>>
}

/** The expected state: the current answers of an undamaged copy, and the contents of log and write side. */
export async function rightAnswers(world: DamagedWorld, name: string): Promise<RightAnswers> {
  const directory = await copyOf(world, name)
  const service = await startPeopleService(directory, world.auth, SILENT)
  const answers = await asked(world, service)
  await service.stop()
  return { answers: [...answers], stored: await storedOf(directory) }
}

async function asked({ names, sessions }: DamagedWorld, service: Pick<Running, 'apiUrl'>): Promise<Answers> {
  const caller = new Caller(service, 4)
  try {
    const answers = await answersOf(caller, pathsOf(names.slice(0, 5)))
    for (const session of sessions.slice(0, 2)) {
      const path = `/api/profile/${names[2]}/reputation`
      answers.set(`${session.person.username} ${path}`, await caller.ask('GET', path, session))
    }
    for (const [path, answer] of await closedDatasets(service)) answers.set(path, answer)
    return answers
  } finally {
    await caller.close()
  }
}

const Datasets = z.object({
  datasets: z.array(z.object({ files: z.array(z.looseObject({ url: z.string(), isClosed: z.boolean() })) }))
})

/** Returns the files of closed months with their listed facts, and makes those that are missing. */
async function closedDatasets({ apiUrl }: Pick<Running, 'apiUrl'>): Promise<Answers> {
  const answers = new Map<string, unknown>()
  const files = async () => {
    // Refused while lost rows are being restored.
    const ask = async () => await fetch(`${apiUrl}/api/data`)
    const list = await poll(ask, ({ status }) => status !== 503, { everyMs: 300, timeoutMs: 10_000 })
    // A file that is made again has the same bytes.
    const withoutTimes = (name: string, value: unknown) => (name === 'madeAt' ? undefined : value)
    const { datasets } = Datasets.parse({ datasets: [], ...JSON.parse(await list.text(), withoutTimes) })
    return datasets.flatMap((dataset) => dataset.files).filter(({ isClosed }) => isClosed)
  }
  for (const { url } of await files()) {
    const answer = await fetch(apiUrl + url)
    const bytes = Buffer.from(await answer.arrayBuffer())
    answers.set(url, { status: answer.status, sha256: createHash('sha256').update(bytes).digest('hex') })
  }
  for (const { url, ...facts } of await files()) answers.set(`list of ${url}`, facts)
  return answers
}

const STORED = new URL('./stored.js', import.meta.url)

/**
 * Hashes of every log topic and of every table of the write side, or of one of these parts, read by a separate process.
 */
async function storedOf(directory: string, ...part: readonly Part[]): Promise<Record<string, string>> {
  const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(STORED), directory, ...part])
  return z.record(z.string(), z.string()).parse(JSON.parse(stdout))
}

/** Starts a service on a damaged copy, sends all requests, and judges its behaviour. */
export async function tryDamage(
  world: DamagedWorld,
  right: RightAnswers,
  done: Damage,
  name: string
): Promise<Outcome> {
  const directory = await copyOf(world, name)
  await damage(directory, done)
  const faults: string[] = []
  const start = () =>
    launchGamenet({
      DATA_DIR: directory,
      AUTH_URL: world.auth.url,
      UPSTREAM_URL: 'http://127.0.0.1:9',
      SCRAPE_NETWORK_SECONDS: '0',
      SCRAPE_GAMES_SECONDS: '0',
      SCRAPE_PLAYERS_SECONDS: '0',
      ...SILENT
    })
  let launched = start()
  let service = await within(START_MS, launched.listening).catch(() => undefined)
  if (service === undefined && launched.process.signalCode !== null) {
    // A damaged page of the log ends a process; the next start reads the pages first, in a process of its own.
    launched = start()
    service = await within(START_MS, launched.listening).catch(() => undefined)
    if (service !== undefined) faults.push('the start after one that died does not say why')
  }
  if (service === undefined) {
    const { signalCode } = launched.process
    if (launched.isAlive()) faults.push('the start hangs')
    if (signalCode !== null) faults.push(`the start died of ${signalCode}`)
    await launched.kill()
    faults.push(...faultsOfText(launched.stderr()))
    return { outcome: 'refused', said: lastLine(launched.stderr()), faults }
  }
  let outcome: Outcome['outcome'] = 'harmless'
  let said = ''
  const found = await asked(world, service).catch((error: unknown) => {
    faults.push(`no answer: ${error}`)
    return new Map<string, unknown>()
  })
  const others = right.answers.filter(
    ([path, answer]) => !isDeepStrictEqual(JSON.parse(JSON.stringify(found.get(path) ?? null)), answer)
  )
  const wrong = others.filter(([path]) => statusOf(found.get(path)) !== 503)
  const failed = wrong.filter(([path]) => statusOf(found.get(path)) === 500)
  if (failed.length > 0)
    faults.push(
      `500: ${failed
        .map(([path]) => path)
        .join(' ')
        .slice(0, 300)}`
    )
  const refused = others.find(([path]) => statusOf(found.get(path)) === 503)
  if (refused !== undefined) {
    outcome = '503'
    said = JSON.stringify(found.get(refused[0]))
  }
  const seen = await operationsAt(service.operatorUrl)
    .run(status, {})
    .catch((error: unknown) => String(error))
  const reported = typeof seen === 'string' ? seen : reportOf(seen)
  if (reported !== '' && outcome === 'harmless') {
    outcome = 'status'
    said = reported
  }
  const verifyNow = async () => {
    const verified = await spawnedGamenet({ DATA_DIR: directory }, ['verify'])
    faults.push(...faultsOfText(verified.stdout + verified.stderr))
    return verified
  }
  if (wrong.length > 0 && reported === '') {
    const verified = await verifyNow()
    outcome = verified.code === 1 ? 'verify' : 'silent'
    said = `${verified.stdout}${verified.stderr} wrong: ${wrong
      .map(([path]) => `${path} ${JSON.stringify(found.get(path))}`)
      .join(' ')
      .slice(0, 600)}`
  }
  const code = await within(STOP_MS, service.stop()).catch(() => 'it does not stop')
  if (code !== 0) faults.push(`the stop: ${code} ${service.process.signalCode ?? ''}`)
  await service.kill()
  faults.push(...faultsOfText(service.stderr()))
  const part = partOf(done.file)
  if (outcome === 'harmless' && part !== 'rows') {
    const own = part === 'log' || part === 'writes' ? [part] : []
    const stored = await storedOf(directory, ...own).catch((error: unknown) => ({ failed: String(error).slice(-600) }))
    const lost = Object.entries(right.stored).filter(
      ([what, hash]) => what.startsWith(own[0] ?? '') && (stored as Record<string, string>)[what] !== hash
    )
    if (lost.length > 0) {
      const verified = await verifyNow()
      outcome = verified.code === 1 ? 'verify' : 'silent'
      said = `${verified.stdout}${verified.stderr} stored otherwise: ${lost.map(([what]) => what).join(' ')} ${JSON.stringify(stored).slice(0, 300)}`
    }
  }
  const isGivenUp = outcome === 'silent' && done.how === 'zeros' && done.file.startsWith('writes/base/')
  return { outcome: isGivenUp ? 'given up' : outcome, said, faults }
}

function reportOf(status: Status): string {
  return [
    ...status.damage.map(({ reason }) => reason),
    ...status.stalled.map(({ reason }) => reason),
    ...status.projections.flatMap(({ projection, reason }) => (reason === null ? [] : [`${projection}: ${reason}`])),
    ...(status.trouble === null ? [] : [status.trouble])
  ].join('; ')
}

function faultsOfText(text: string): string[] {
  return [
    ...(/does not know/.test(text) ? ['"does not know"'] : []),
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it searches for them
    ...(/[\u0000-\u0008\u000b-\u001a\u001c-\u001f\ufffd]/.test(text) ? ['raw bytes'] : []),
    ...(/\n\s+at \S+ \(/.test(text) ? ['a stack'] : [])
  ].map((fault) => `${fault}: ${lastLine(text)}`)
}

function statusOf(answer: unknown): number | undefined {
  return z.object({ status: z.int() }).safeParse(answer).data?.status
}

function lastLine(text: string): string {
  return (text.trim().split('\n').at(-1) ?? '').slice(0, 600)
}

async function within<Answer>(ms: number, work: Promise<Answer>): Promise<Answer> {
  return await withTimeout(work, ms, () => {
    throw new Error(`not within ${ms} ms`)
  })
}
