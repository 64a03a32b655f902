import { openChdb } from '@gamenet/engines'
import { ruleOf, ruleStatement } from '@gamenet/ingest/internals'
import { migrate } from '@gamenet/projector'
import { achievementGroups, achievements, FIRST_GENERATION, withServing } from '@gamenet/schemas'
import { type Test, test } from 'tap'

async function openTables(t: Test) {
  const engine = await openChdb({ path: t.testdir() })
  t.teardown(() => engine.close())
  await migrate(engine.control)
  return { control: engine.control, tables: withServing(engine.readers, FIRST_GENERATION) }
}

const NO_GAMES = { games: [''], game_keys: [''] }

test('the rules of the catalog', async (t) => {
  const { tables, control } = await openTables(t)

  await t.test('every rule of the catalog is a statement that the tables answer', async (t) => {
    for (const achievement of achievements) {
      const parameters = { users: ['ann', 'bob'], now_ms: 0, ...NO_GAMES }
      t.same(await tables.rows(ruleStatement([achievement]), parameters), [], achievement.key)
    }
    t.throws(() => ruleStatement([]))
    t.throws(() => ruleStatement(achievements), /different facts/)
  })

  await t.test('rules about days are evaluated for a hundred users with years of days at once', async (t) => {
    const [users, days] = [100, 1200]
    await control.execute(
      `INSERT INTO presence_day__0 (user_key, day, sightings, online_sightings, last_at, seconds, position)
     SELECT 'user' || toString(n.number % ${users}), toDate('2020-01-01') + intDiv(n.number, ${users}), 2, 2,
       toDateTime64(toDate('2020-01-01') + intDiv(n.number, ${users}), 3, 'UTC') + 3600, map('Ride', 3600), n.number
     FROM numbers(${users * days}) AS n`
    )
    const byKey = (key: string) => achievements.find((each) => each.key === key)
    const weekender = byKey('weekender')
    const aboutDays = achievements.filter(
      (each) => weekender !== undefined && ruleOf(each).facts === ruleOf(weekender).facts
    )
    const parameters = { users: Array.from({ length: users }, (_, n) => `user${n}`), now_ms: 0, ...NO_GAMES }
    const rows = await tables.rows(ruleStatement(aboutDays), parameters)
    t.equal(rows.length, users)
    const reached = new Map(
      ((rows[0]?.reached ?? []) as [number, string][]).map(([id, at]) => [Number(id), Number(at)])
    )
    t.equal(reached.get(weekender?.id ?? 0), Date.UTC(2020, 0, 5, 1), 'the first Sunday after a Saturday')
    t.equal(reached.get(byKey('year-round')?.id ?? 0), Date.UTC(2020, 11, 30, 1))
  })
})

test('ids and keys are unique, groups exist, points are 5 to 100', (t) => {
  t.equal(new Set(achievements.map(({ id }) => id)).size, achievements.length)
  t.equal(new Set(achievements.map(({ key }) => key)).size, achievements.length)
  const groups = new Set(achievementGroups.map(({ groupId }) => groupId))
  for (const { key, groupId, points } of achievements) {
    t.ok(groups.has(groupId) && points >= 5 && points <= 100 && points % 5 === 0, key)
  }
  t.end()
})
