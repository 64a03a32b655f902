import { execSync } from 'node:child_process'
import { test } from 'tap'
import { openClickHouseServer, openPinned } from '../src/index.js'
import { killsMissing, replicaCommands, replicatedDatabase, until } from '../testing/index.js'

const KILLS = Number(process.env.CAMPAIGN_KILLS ?? 12)

test('pinned replicas are killed: nothing acknowledged is lost, and no reader goes back', {
  skip: killsMissing(),
  timeout: 0
}, async (t) => {
  const { kill, start } = replicaCommands()
  const urls = await replicatedDatabase(t)
  const pinned = openPinned({ urls })
  t.teardown(() => pinned.close())
  await pinned.control.execute('CREATE TABLE written (n UInt64) ENGINE = ReplicatedMergeTree ORDER BY n')
  let acknowledged = 0
  let shown = 0
  let wentBack = 0
  let isOver = false
  const repeated = async (step: () => Promise<void>) => {
    while (!isOver) await step().catch(() => new Promise((resolve) => setTimeout(resolve, 50)))
  }
  const writing = repeated(async () => {
    await pinned.loader.insert('written', ['n'], new TextEncoder().encode(`[${acknowledged + 1}]\n`))
    acknowledged += 1
  })
  const reading = repeated(async () => {
    const [row] = await pinned.readers.rows('SELECT max(w.n) AS n FROM written AS w')
    if (Number(row?.n) < shown) wentBack += 1
    shown = Math.max(shown, Number(row?.n))
  })
  for (let kills = 0; kills < KILLS; kills += 1) {
    const before = acknowledged
    await until(() => acknowledged > before + 20)
    const place = (pinned.replicas?.().findIndex(({ isPinned }) => isPinned) ?? 0) + 1
    execSync(`${kill} ${place}`)
    await until(() => pinned.replicas?.().some((each, at) => each.isPinned && at + 1 !== place) === true)
    const after = acknowledged
    await until(() => acknowledged > after)
    execSync(`${start} ${place}`, { stdio: 'ignore' })
    await until(() => pinned.replicas?.()[place - 1]?.fault === undefined)
  }
  isOver = true
  await Promise.all([writing, reading])
  t.comment(`${KILLS} kills, ${acknowledged} acknowledged rows, ${wentBack} looks went back`)
  t.equal(wentBack, 0)
  for (const url of urls) {
    const server = openClickHouseServer({ url })
    t.teardown(() => server.close())
    await server.control.sync(['written'])
    const [row] = await server.control.rows('SELECT uniqExact(w.n) AS n FROM written AS w')
    t.ok(Number(row?.n) >= acknowledged, 'every replica has every acknowledged row')
  }
})
