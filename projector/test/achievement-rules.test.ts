import { achievementGroups, achievements, ruleStatement } from '@gamenet/schemas'
import { test } from 'tap'
import { openTables } from './pipeline.js'

test('every rule of the catalogue is a statement that the tables answer', async (t) => {
  const { control } = await openTables(t)
  for (const achievement of achievements) {
    const asked = { users: ['ann', 'bob'], now_ms: 0 }
    t.same(await control.rows(ruleStatement([achievement]), asked), [], achievement.key)
  }
})

test('ids and keys are given once, groups exist, points are 5 to 100', (t) => {
  t.equal(new Set(achievements.map(({ id }) => id)).size, achievements.length)
  t.equal(new Set(achievements.map(({ key }) => key)).size, achievements.length)
  const groups = new Set(achievementGroups.map(({ groupId }) => groupId))
  for (const { key, groupId, points } of achievements) {
    t.ok(groups.has(groupId) && points >= 5 && points <= 100 && points % 5 === 0, key)
  }
  t.end()
})
