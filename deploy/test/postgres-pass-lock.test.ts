import { openPostgres } from '@gamenet/engines'
import { postgresPrograms, startPostgres } from '@gamenet/engines/testing'
import { StepsHeld } from '@gamenet/projector/rebuild'
import { FILLS_LOCK, PASSES_LOCK } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { advisoryLocks, HeldLocks, sharedPasses } from '../src/stores/postgres-pass-lock.js'

const programs = postgresPrograms()
const NO_POSTGRES = 'PostgreSQL is not here: /usr/lib/postgresql (Debian package postgresql)'
const skip = programs === undefined && process.env.CI !== 'true' ? NO_POSTGRES : false

test('exclusive work excludes the passes of every process', { skip }, async (t) => {
  if (programs === undefined) throw new Error(NO_POSTGRES)
  const server = await startPostgres(programs)
  t.teardown(() => server.stop())
  const connected = [0, 1].map(() => {
    const postgres = openPostgres({ url: server.url })
    t.teardown(() => postgres.close())
    return { locks: advisoryLocks(async () => postgres, { heldLocks: new HeldLocks() }) }
  })
  const waits: number[] = []
  const [one, other] = connected.map((needs) => sharedPasses({ ...needs, lock: PASSES_LOCK }))
  const fills = connected.map((needs) => sharedPasses({ ...needs, lock: FILLS_LOCK, onWaited: (s) => waits.push(s) }))
  if (one === undefined || other === undefined) throw new Error('two projectors were to share')
  const order: string[] = []

  await t.test('passes share the lock, and exclusive work waits for both', async () => {
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
    const exclusive = other.exclusive(async () => void order.push('exclusive'))
    end.open()
    await Promise.all([...passes, exclusive])
    t.same(order, ['pass', 'pass', 'exclusive'])
  })
  await t.test('a pass waits for exclusive work, and sees what it made', async (t) => {
    const begun = latch()
    const postgres = openPostgres({ url: server.url })
    t.teardown(() => postgres.close())
    let made = 0
    const exclusive = one.exclusive(async () => {
      begun.open()
      await postgres.query('SELECT pg_sleep(0.2)')
      made = 1
      return 'done'
    })
    await begun.opened
    t.equal(await other.shared(async () => made), 1)
    t.equal(await exclusive, 'done')
    await t.rejects(
      one.exclusive(async () => Promise.reject(new Error('it failed'))),
      /it failed/
    )
    t.equal(await other.shared(async () => 'continues'), 'continues')
  })
  await t.test('a step of a rebuild that waits too long for an exclusive lock is refused temporarily', async (t) => {
    const [begun, end] = [latch(), latch()]
    const [first, second] = fills
    if (first === undefined || second === undefined) throw new Error('two projectors were to share')
    const exclusive = first.exclusive(async () => {
      begun.open()
      await end.opened
    })
    await begun.opened
    await t.rejects(
      second.shared(async () => undefined),
      { name: 'StepsHeld', message: /this step waits/ }
    )
    t.ok((waits[1] ?? 0) >= 8, 'a vain wait is measured')
    end.open()
    await exclusive
    t.equal(await second.shared(async () => 'made'), 'made')
    t.equal(waits.length, 3)
  })
  await t.test('a holder of the exclusive lock learns that the lock is lost', async (t) => {
    await t.rejects(
      one.exclusive(async (check) => {
        await check()
        await server.kill()
        await check()
      })
    )
    await server.start()
  })
  /** A process whose transactions may rest for half a second. */
  const holder = (t: Test, heldLocks: HeldLocks, renewMs: number) => {
    const postgres = openPostgres({ url: server.url, idleTransactionMs: 500 })
    t.teardown(() => postgres.close())
    return sharedPasses({ locks: advisoryLocks(async () => postgres, { heldLocks, renewMs }), lock: PASSES_LOCK })
  }
  await t.test('a stopped process loses its lock, and writes nothing more until it knows', async (t) => {
    const heldLocks = new HeldLocks({ sureMs: 400 })
    const stopped = holder(t, heldLocks, 3_600_000)
    const waited = latch()
    const pass = stopped.shared(async (check) => {
      await other.exclusive(async () => waited.open())
      t.throws(() => heldLocks.requireSure('projections'), /Nothing more is written/)
      t.throws(() => heldLocks.requireSure('control'), /Nothing more is written/)
      heldLocks.requireSure('rebuild')
      await check()
    })
    await t.rejects(pass, { code: 'engine_away' })
    await waited.opened
    heldLocks.requireSure('projections')
  })
  await t.test('a process that works keeps its lock, however long', async (t) => {
    const heldLocks = new HeldLocks()
    const order: string[] = []
    const begun = latch()
    const work = holder(t, heldLocks, 50).exclusive(async (check) => {
      begun.open()
      const pauses = openPostgres({ url: server.url })
      t.teardown(() => pauses.close())
      await pauses.query('SELECT pg_sleep(2)')
      await check()
      heldLocks.requireSure('projections')
      order.push('exclusive')
    })
    await begun.opened
    await Promise.all([work, other.shared(async () => void order.push('pass'))])
    t.same(order, ['exclusive', 'pass'])
  })
  await t.test('a pass whose lock is lost fails before its changes are published', async (t) => {
    await t.rejects(
      one.shared(async (check) => {
        await server.kill()
        await check()
      })
    )
  })
  await t.test('without PostgreSQL passes run, and exclusive work is refused', async (t) => {
    t.equal(await one.shared(async (check) => check().then(() => 'made')), 'made')
    await t.rejects(
      one.exclusive(async () => undefined),
      /PostgreSQL is unavailable/
    )
  })
  await t.test('without PostgreSQL a step of a rebuild waits until it is back', async (t) => {
    const postgres = openPostgres({ url: server.url })
    t.teardown(() => postgres.close())
    const fills = sharedPasses({
      locks: advisoryLocks(async () => postgres, { heldLocks: new HeldLocks() }),
      lock: FILLS_LOCK
    })
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

function latch() {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}
