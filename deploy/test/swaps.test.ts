import { join } from 'node:path'
import { SwapWatch } from '@gamenet/api'
import { openChdb, openPostgres } from '@gamenet/engines'
import { postgresPrograms, startPostgres } from '@gamenet/engines/testing'
import { migrate, readNewestAnnouncement, storeOver } from '@gamenet/projector'
import { StepsHeld } from '@gamenet/projector/rebuild'
import { FILLS_LOCK, PASSES_LOCK } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { sharedPasses } from '../src/wiring/postgres-pass-lock.js'
import { announceSwap } from '../src/wiring/swaps.js'

const programs = postgresPrograms()
const NO_POSTGRES = 'PostgreSQL is not here: /usr/lib/postgresql (Debian package postgresql)'
const skip = programs === undefined && process.env.CI !== 'true' ? NO_POSTGRES : false

test('a swap is announced in the tables, before it begins and when it has ended', async (t) => {
  const chdb = await openTables(t)
  const store = storeOver(chdb.control)
  let nowMs = 0
  let learnt = 0
  const watch = new SwapWatch({
    newest: () => store.do(readNewestAnnouncement),
    learn: async () => {
      learnt += 1
    },
    clock: { now: () => nowMs, wait: async () => undefined }
  })
  t.equal(await watch.before(), 0)
  const seen: number[] = []
  const swap = (dies: boolean) =>
    announceSwap(
      store,
      ['title', 'title-latest'],
      async () => {
        seen.push(await watch.after())
        if (dies) throw new Error('the engine went away')
      },
      async (ms) => {
        nowMs += ms
        seen.push(await watch.after())
      }
    )
  await swap(false)
  t.same(seen, [0, 1])
  t.equal(await watch.before(), 2, 'reading goes on')
  t.equal(learnt, 2, 'with what has changed, as at first')
  await t.rejects(swap(true), /went away/)
  t.same(seen, [0, 1, 2, 3])
  await swap(false)
  t.same(seen, [0, 1, 2, 3, 3], 'one that failed is not over until another has ended it')
  t.equal(await watch.before(), 4)
  const states = await chdb.control.rows(
    'SELECT e.id AS id, e.state AS state FROM exchange AS e ORDER BY e.id, e.state'
  )
  t.same(
    states.map(({ id, state }) => `${id} ${state}`),
    ['1 announced', '1 begun', '1 ended', '2 announced', '2 begun', '2 ended']
  )
})

test('what may run beside no pass runs beside none of any process', { skip }, async (t) => {
  if (programs === undefined) throw new Error(NO_POSTGRES)
  const chdb = await openTables(t)
  const store = storeOver(chdb.control)
  const server = await startPostgres(programs)
  t.teardown(() => server.stop())
  const connected = [0, 1].map(() => {
    const postgres = openPostgres({ url: server.url })
    t.teardown(() => postgres.close())
    return { writes: async () => postgres, store }
  })
  const [one, other] = connected.map((needs) => sharedPasses({ ...needs, lock: PASSES_LOCK }))
  const fills = connected.map((needs) => sharedPasses({ ...needs, lock: FILLS_LOCK }))
  if (one === undefined || other === undefined) throw new Error('two projectors were to share')
  const order: string[] = []

  await t.test('passes run beside one another, and alone waits for both', async () => {
    const begun = [latch(), latch()]
    const end = latch()
    const passes = [one, other].map((passes, n) =>
      passes.shared(async (check) => {
        begun[n]?.open()
        await end.opened
        await check()
        order.push('pass')
      })
    )
    await Promise.all(begun.map(({ opened }) => opened))
    const alone = other.exclusive(async () => void order.push('alone'))
    end.open()
    await Promise.all([...passes, alone])
    t.same(order, ['pass', 'pass', 'alone'])
  })
  await t.test('a pass waits for what is alone, and sees what it made', async (t) => {
    const begun = latch()
    let made = 0
    const alone = one.exclusive(async () => {
      begun.open()
      await chdb.control.rows('SELECT sleep(0.2) AS slept')
      made = 1
      return 'done'
    })
    await begun.opened
    t.equal(await other.shared(async () => made), 1)
    t.equal(await alone, 'done')
    await t.rejects(
      one.exclusive(async () => Promise.reject(new Error('it failed'))),
      /it failed/
    )
    t.equal(await other.shared(async () => 'goes on'), 'goes on')
  })
  await t.test('a step of a rebuild that waits too long for what is alone is told to be made later', async (t) => {
    const [begun, end] = [latch(), latch()]
    const [first, second] = fills
    if (first === undefined || second === undefined) throw new Error('two projectors were to share')
    const alone = first.exclusive(async () => {
      begun.open()
      await end.opened
    })
    await begun.opened
    await t.rejects(
      second.shared(async () => undefined),
      { name: 'StepsHeld', message: /this step waits/ }
    )
    end.open()
    await alone
    t.equal(await second.shared(async () => 'made'), 'made')
  })
  await t.test('what is alone learns that its lock is lost', async (t) => {
    await t.rejects(
      one.exclusive(async (check) => {
        await check()
        await server.kill()
        await check()
      })
    )
    await server.start()
  })
  await t.test('a pass whose lock is lost says so before it is made known', async (t) => {
    await t.rejects(
      one.shared(async (check) => {
        await server.kill()
        await check()
      })
    )
  })
  await t.test('without PostgreSQL passes go on, unless a swap is announced; nobody is alone', async (t) => {
    t.equal(await one.shared(async (check) => check().then(() => 'made')), 'made')
    await t.rejects(
      one.exclusive(async () => undefined),
      /PostgreSQL is unavailable/
    )
    await announceSwap(
      store,
      ['title'],
      async () => undefined,
      () =>
        t.rejects(
          one.shared((check) => check()),
          /repeated/
        )
    )
    await one.shared((check) => check())
    const pass = one.shared(async (check) => {
      await announceSwap(
        store,
        ['title'],
        async () => undefined,
        async () => undefined
      )
      await check()
    })
    await t.rejects(pass, /repeated/, 'one that began and ended while the pass ran is seen as well')
  })
  await t.test('without PostgreSQL a step of a rebuild waits until it is back', async (t) => {
    const postgres = openPostgres({ url: server.url })
    t.teardown(() => postgres.close())
    const fills = sharedPasses({ writes: async () => postgres, store, lock: FILLS_LOCK })
    let steps = 0
    const step = async () => {
      steps += 1
    }
    await t.rejects(fills.shared(step), StepsHeld)
    t.equal(steps, 0)
    await server.start()
    await fills.shared(step)
    t.equal(steps, 1)
  })
})

async function openTables(t: Test) {
  const chdb = await openChdb({ path: join(t.testdir({}), 'tables') })
  t.teardown(() => chdb.close())
  await migrate(chdb.control)
  return chdb
}

function latch() {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}
