import assert from 'node:assert/strict'
import { join } from 'node:path'
import { migratePostgres, openPglite, openPostgres, type Postgres } from '@gamenet/engines'
import { type PostgresProcess, postgresPrograms, startPostgres } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import { type BoardLease, type BoardLeases, boardLeases, type VisitResult } from '../../src/boards/board-leases.js'
import { nextPeriodS, restS } from '../../src/boards/visit-period.js'
import { acquireLease, endLeases, releaseLeases } from '../../src/ports/leases.js'

const SHORTEST_S = 300
const LEASE_S = 600
const OPTIONS = { shortestS: SHORTEST_S, leaseS: LEASE_S }
const START_MS = Date.UTC(2026, 0, 1)
const TITLES = ['4d530064', '55530036'] as const
/** The schema `clock` comes before PostgreSQL's own, so that a test sets `now()`. */
const PATH = 'clock, pg_catalog, public'
const CLOCK = `
  CREATE SCHEMA clock;
  CREATE TABLE clock.instant (at timestamptz NOT NULL);
  INSERT INTO clock.instant VALUES (now());
  CREATE FUNCTION clock.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT i.at FROM clock.instant AS i'`

async function setClock(writes: Postgres, ms: number): Promise<void> {
  await writes.query('UPDATE clock.instant AS i SET at = $1::timestamptz', [new Date(ms)])
}

async function empty(writes: Postgres): Promise<void> {
  await writes.query('DELETE FROM board_lease')
  await setClock(writes, START_MS)
}

/** The rules of leases as plain code, without SQL. */
class Model {
  nowMs = START_MS
  rows = new Map<string, Row>()

  add(titleId: string, leaderboardId: number | null): void {
    const key = keyOf({ titleId, leaderboardId })
    if (this.rows.has(key)) return
    const state = { periodS: SHORTEST_S, failures: 0, wasUnclean: true, appended: [], equal: null }
    const times = { dueMs: this.nowMs, triedMs: null, holder: null, leaseUntilMs: null }
    this.rows.set(key, { titleId, leaderboardId, ...state, ...times })
  }

  take(count: number, untriedSinceMs: number | undefined, holder: string): Row[] {
    const isWanted = ({ dueMs, triedMs }: Row) =>
      untriedSinceMs === undefined
        ? dueMs <= this.nowMs
        : triedMs === null || triedMs < untriedSinceMs || triedMs > this.nowMs
    const overdue = ({ dueMs, periodS }: Row) => (this.nowMs - dueMs) / 1000 / Math.max(periodS, SHORTEST_S)
    const isList = ({ leaderboardId }: Row) => Number(leaderboardId === null)
    const first = untriedSinceMs === undefined ? overdue : isList
    const taken = [...this.rows.values()]
      .filter((row) => isWanted(row) && this.isFree(row))
      .sort(
        (a, b) =>
          first(b) - first(a) || (a.titleId < b.titleId ? -1 : Number(a.titleId > b.titleId)) || idOf(a) - idOf(b)
      )
      .slice(0, count)
    const before = taken.map((row) => ({ ...row, holder }))
    for (const row of taken) {
      const leaseUntilMs = this.nowMs + LEASE_S * 1000
      Object.assign(row, { holder, leaseUntilMs, triedMs: this.nowMs, wasUnclean: true })
    }
    return before
  }

  /** Returns the row of a lease, if its holder still has it. */
  held(lease: BoardLease): Row | undefined {
    const row = this.rows.get(keyOf(lease))
    return row?.holder === lease.holder ? row : undefined
  }

  end(row: Row, { restS: rest, isUnclean, ...kept }: VisitResult): void {
    const dueMs = this.nowMs + rest * 1000
    Object.assign(row, { ...kept, wasUnclean: isUnclean, dueMs, holder: null, leaseUntilMs: null })
  }

  setBoards(titleId: string, ids: readonly number[]): void {
    for (const id of ids) this.add(titleId, id)
    for (const [key, row] of this.rows) {
      if (row.titleId !== titleId) continue
      if (row.leaderboardId === null) row.dueMs = Math.max(row.dueMs, this.nowMs + row.periodS * 1000)
      else if (!ids.includes(row.leaderboardId) && this.isFree(row)) this.rows.delete(key)
    }
  }

  isFree({ leaseUntilMs }: Row): boolean {
    return leaseUntilMs === null || leaseUntilMs <= this.nowMs
  }
}

type Row = Omit<BoardLease, 'holder'> & {
  dueMs: number
  triedMs: number | null
  holder: string | null
  leaseUntilMs: number | null
}

const idOf = ({ leaderboardId }: { leaderboardId: number | null }) => leaderboardId ?? -1
const keyOf = (place: { titleId: string; leaderboardId: number | null }) => `${place.titleId}/${idOf(place)}`
/** The contents of leases, sorted, because the engine returns them in any order. */
const saidOf = (leases: readonly (BoardLease | Row)[]) =>
  leases
    .map(({ titleId, leaderboardId, periodS, failures, wasUnclean, appended, equal }) => ({
      ...{ titleId, leaderboardId, periodS, failures, wasUnclean, appended, equal }
    }))
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))

const visited: fc.Arbitrary<VisitResult> = fc.record({
  restS: fc.integer({ min: 0, max: 4000 }),
  periodS: fc.integer({ min: SHORTEST_S, max: 4000 }),
  failures: fc.nat({ max: 2 }),
  isUnclean: fc.boolean(),
  appended: fc.constantFrom([], [{ epoch: 1, partition: 0, next: 2 ** 40 }]),
  equal: fc.constantFrom(
    null,
    { validators: {}, content: 'c', version: '9007199254740993' },
    {
      validators: { etag: '"e"', lastModified: 'yesterday' },
      content: 'd',
      version: '1'
    }
  )
})
const title = fc.constantFrom(...TITLES)
const ids = fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { maxLength: 6 })
const isOther = fc.boolean()
const nth = fc.nat({ max: 20 })
const step = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('setBoards' as const), title, ids, isOther }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('add' as const), isOther }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('take' as const),
      count: fc.integer({ min: 1, max: 8 }),
      isUntried: fc.boolean(),
      isOther
    })
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('end' as const), nth, visited, isOther }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('renew', 'drop', 'release', 'release' as const), nth, isOther })
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('hasten' as const), title, isOther }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      seconds: fc.constantFrom(1, 100, 300, 599, 600, 4000),
      isOther
    })
  }
)
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

/** Runs one step in the engine and in the model; throws if they differ. */
async function take(
  writes: Postgres,
  leases: BoardLeases,
  model: Model,
  taken: BoardLease[],
  done: Step
): Promise<void> {
  switch (done.kind) {
    case 'add':
      await leases.add(TITLES)
      for (const titleId of TITLES) model.add(titleId, null)
      return
    case 'setBoards': {
      const before = model.rows.size
      const news = done.ids.filter((id) => !model.rows.has(keyOf({ titleId: done.title, leaderboardId: id }))).length
      assert.deepEqual(await leases.setBoards(done.title, done.ids), { added: news }, `of ${before} leases`)
      return model.setBoards(done.title, done.ids)
    }
    case 'take': {
      const untriedSince = done.isUntried ? new Date(model.nowMs - 300_000) : undefined
      const got = await leases.acquire(done.count, untriedSince === undefined ? {} : { untriedSince })
      const expected = model.take(done.count, untriedSince?.getTime(), got[0]?.holder ?? 'nobody')
      assert.deepEqual(saidOf(got), saidOf(expected))
      taken.push(...got)
      return
    }
    case 'pass':
      model.nowMs += done.seconds * 1000
      return await setClock(writes, model.nowMs)
    case 'hasten': {
      await leases.hastenList(done.title)
      const list = model.rows.get(keyOf({ titleId: done.title, leaderboardId: null }))
      if (list?.failures === 0) list.dueMs = Math.min(list.dueMs, model.nowMs)
      return
    }
    default:
      return await endOne(leases, model, taken, done)
  }
}

async function endOne(
  leases: BoardLeases,
  model: Model,
  taken: readonly BoardLease[],
  done: Extract<Step, { nth: number }>
): Promise<void> {
  // Ended and lost leases too: their holders must learn it.
  const lease = taken[taken.length - 1 - (done.nth % Math.max(taken.length, 1))]
  if (lease === undefined) return
  const row = model.held(lease)
  const isHeld = row !== undefined
  if (done.kind === 'end') assert.equal(await leases.end(lease, done.visited), isHeld)
  if (done.kind === 'renew') assert.equal(await leases.renew(lease), isHeld)
  if (done.kind === 'drop') assert.equal(await leases.drop(lease), isHeld)
  if (done.kind === 'release') await leases.release([lease])
  if (row === undefined) return
  if (done.kind === 'end') model.end(row, done.visited)
  if (done.kind === 'renew') row.leaseUntilMs = model.nowMs + LEASE_S * 1000
  if (done.kind === 'drop') model.rows.delete(keyOf(lease))
  const asBefore = { holder: null, leaseUntilMs: null, triedMs: null, wasUnclean: lease.wasUnclean }
  if (done.kind === 'release') Object.assign(row, asBefore)
}

/** `restart` ends the engine and opens it again on the same data. */
type Engine = { readonly writes: () => Postgres; readonly restart: () => Promise<void> }

/** What does not depend on who else is connected. */
function leasesModel(engine: Engine): void {
  test('after any steps of two processes, the leases equal those of a plain model', async (t) => {
    const writes = engine.writes()
    let takes = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
        await empty(writes)
        const model = new Model()
        const taken: BoardLease[] = []
        const processes = [boardLeases(writes, OPTIONS), boardLeases(writes, OPTIONS)]
        for (const done of [{ kind: 'add', isOther: false } as const, ...steps]) {
          const leases = processes[Number(done.isOther)]
          if (leases !== undefined) await take(writes, leases, model, taken, done)
        }
        takes += taken.length
        const rows = [...model.rows.values()]
        const due = rows.filter((row) => row.dueMs <= model.nowMs && model.isFree(row)).length
        assert.deepEqual(await boardLeases(writes, OPTIONS).count(), { all: rows.length, due })
        const left = model.take(100, undefined, 'last')
        assert.deepEqual(saidOf(await boardLeases(writes, OPTIONS).acquire(100)), saidOf(left), 'what is left')
      }),
      { numRuns: 60, endOnFailure: true }
    )
    t.ok(takes > 100, `${takes} leases were acquired`)
  })

  test('boards are visited although the clock was set back', async (t) => {
    const writes = engine.writes()
    await empty(writes)
    const leases = boardLeases(writes, OPTIONS)
    await leases.add(TITLES)
    await leases.release(await leases.acquire(1))
    for (const lease of await leases.acquire(9)) await leases.end(lease, { ...lease, restS: 60, isUnclean: false })
    await setClock(writes, START_MS - 3_600_000)
    t.match(await leases.count(), { due: TITLES.length })
    const due = await leases.acquire(9)
    t.match(due, { length: TITLES.length })
    for (const lease of due) await leases.end(lease, { ...lease, restS: 60, isUnclean: false })
    t.match(await leases.acquire(9), { length: 0 }, 'once')
    await setClock(writes, START_MS - 7_200_000)
    const everything = { untriedSince: await leases.now() }
    t.match(await leases.acquire(9, everything), { length: TITLES.length })
    t.match(await leases.acquire(9, everything), { length: 0 }, 'once')
  })

  test('active boards are visited more often than quiet ones, and all are visited', async (t) => {
    const writes = engine.writes()
    await empty(writes)
    const leases = boardLeases(writes, OPTIONS)
    await leases.setBoards(TITLES[0], [0, 1, 2, 3, 4, 5])
    const visits = new Map<number | null, number>()
    // Two days, with fewer visits than all boards would need at their shortest period.
    for (let minute = 0; minute < 2880; minute += 10) {
      await setClock(writes, START_MS + minute * 60_000)
      for (const lease of await leases.acquire(2)) {
        const periodS = nextPeriodS(lease.periodS, lease.leaderboardId === 0, SHORTEST_S)
        const clean = { failures: 0, isUnclean: false, appended: [], equal: null }
        await leases.end(lease, { ...clean, periodS, restS: restS(periodS, 0.5) })
        visits.set(lease.leaderboardId, (visits.get(lease.leaderboardId) ?? 0) + 1)
      }
    }
    const lively = visits.get(0) ?? 0
    for (const quiet of [1, 2, 3, 4, 5]) {
      const count = visits.get(quiet) ?? 0
      t.ok(count >= 5 && count * 10 < lively, `board ${quiet}: ${count} visits, the lively one: ${lively}`)
    }
  })

  test('a process with exclusive use of the write side waits for no lease of a dead one', async (t) => {
    await empty(engine.writes())
    const writes = engine.writes()
    const before = boardLeases(writes, OPTIONS)
    await before.setBoards(TITLES[0], [1])
    const [held] = await before.acquire(1)
    t.ok(await acquireLease(writes, 'evaluation', 'the dead', 60))
    t.notOk(await acquireLease(writes, 'evaluation', 'the next', 60), 'the lease holds')
    await endLeases(writes)
    t.match(saidOf(await boardLeases(writes, OPTIONS).acquire(9)), [{ leaderboardId: 1, wasUnclean: true }])
    t.ok(await acquireLease(writes, 'evaluation', 'the next', 60))
    if (held !== undefined) t.equal(await before.renew(held), false, 'who held one has lost it')
    await releaseLeases(writes, 'the next')
  })
}

function leasesContract(name: string, options: { skip?: string | false }, engine: Engine): void {
  test(
    `${name}: two processes that acquire at the same time never get the same lease, and leave none`,
    options,
    async (t) => {
      const writes = engine.writes()
      await empty(writes)
      const [first, second] = [boardLeases(writes, OPTIONS), boardLeases(writes, OPTIONS)]
      const boards = Array.from({ length: 200 }, (_, id) => id)
      await Promise.all([first.setBoards(TITLES[0], boards), second.setBoards(TITLES[0], boards)])
      const got: BoardLease[] = []
      for (let rounds = 0; rounds < 20 && got.length < 200; rounds += 1) {
        const takes = await Promise.all([first, second, first, second].map((leases) => leases.acquire(9)))
        got.push(...takes.flat())
      }
      t.equal(got.length, 200)
      t.equal(new Set(got.map(keyOf)).size, 200)
      t.same(await second.acquire(9), [])
    }
  )

  test(`${name}: leases outlive the engine, and one that was held at its death is unclean`, options, async (t) => {
    await empty(engine.writes())
    const before = boardLeases(engine.writes(), OPTIONS)
    await before.setBoards(TITLES[0], [1, 2])
    const both = await before.acquire(2)
    const ended = both.find(({ leaderboardId }) => leaderboardId === 1)
    const appended = [{ epoch: 3, partition: 1, next: 7 }]
    const clean = { failures: 0, isUnclean: false, periodS: 450, restS: LEASE_S, equal: null }
    if (ended !== undefined) await before.end(ended, { ...clean, appended })
    await engine.restart()
    const writes = engine.writes()
    const after = boardLeases(writes, OPTIONS)
    t.same(await after.acquire(9), [], 'the lease holds')
    await setClock(writes, START_MS + LEASE_S * 1000)
    t.match(saidOf(await after.acquire(9)), [
      { leaderboardId: 1, wasUnclean: false, periodS: 450, appended },
      { leaderboardId: 2, wasUnclean: true, periodS: SHORTEST_S, appended: [] }
    ])
    for (const lease of both) t.equal(await after.renew(lease), false, 'and the old process has lost it')
  })
}

let embedded: Postgres | undefined
let directory = ''
const openEmbedded = async () => {
  embedded = await openPglite({ dir: directory })
}
test('PGlite opens', async (t: Test) => {
  directory = join(t.testdir({}), '..', `leases-${process.pid}`)
  await openEmbedded()
  if (embedded === undefined) throw new Error('PGlite was not opened.')
  await migratePostgres(embedded)
  await embedded.script(`${CLOCK}; SET search_path = ${PATH}`)
})
const opened = (engine: Postgres | undefined): Postgres => {
  if (engine === undefined) throw new Error('The engine was not opened.')
  return engine
}
const onPglite: Engine = {
  writes: () => opened(embedded),
  async restart() {
    await embedded?.close()
    await openEmbedded()
    await embedded?.script(`SET search_path = ${PATH}`)
  }
}
leasesModel(onPglite)
leasesContract('PGlite', {}, onPglite)
test('PGlite closes', async () => {
  await embedded?.close()
})

const programs = postgresPrograms()
const missing = 'PostgreSQL is not installed (Debian: apt-get install postgresql); leases on a server stay untested'
const skip = programs === undefined && process.env.CI !== 'true' ? missing : false
let server: PostgresProcess | undefined
let pool: Postgres | undefined
const openPool = () => {
  pool = openPostgres({
    url: `${server?.url}?options=${encodeURIComponent(`-c search_path=${PATH.replaceAll(' ', '')}`)}`
  })
}
test('a PostgreSQL server starts', { skip }, async (t) => {
  if (programs === undefined) throw new Error(missing)
  server = await startPostgres(programs)
  const plain = openPostgres({ url: server.url })
  await migratePostgres(plain)
  await plain.script(CLOCK)
  await plain.close()
  openPool()
  t.ok(pool)
})
leasesContract(
  'a server',
  { skip },
  {
    writes: () => opened(pool),
    async restart() {
      await pool?.close()
      await server?.kill()
      await server?.start()
      openPool()
    }
  }
)
test('a server: a lease that another process is acquiring is skipped, not waited for', { skip }, async (t) => {
  const writes = opened(pool)
  await empty(writes)
  const leases = boardLeases(writes, OPTIONS)
  await leases.setBoards(TITLES[0], [1, 2, 3])
  await writes.transaction(async (taking) => {
    await taking.query('SELECT 1 FROM board_lease AS t WHERE t.leaderboard_id = 2 FOR UPDATE')
    t.same(
      saidOf(await leases.acquire(9)).map(({ leaderboardId }) => leaderboardId),
      [1, 3]
    )
  })
  t.match(await leases.acquire(9), [{ leaderboardId: 2 }])
})
test('the PostgreSQL server stops', { skip }, async () => {
  await pool?.close()
  await server?.stop()
})
