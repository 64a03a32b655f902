import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { achievements, newUnlock, revealedOf, shownGroups, veiled } from '../src/index.js'

const DOCS = new URL('../../../docs/achievements.md', import.meta.url)

test('the page about achievements lists all that are not hidden, and no hidden one', async (t) => {
  const text = await readFile(DOCS, 'utf8')
  const shown = achievements.map((each) => veiled(each)).filter(({ is_hidden }) => !is_hidden)
  const rows = shown.map(
    ({ id, key, name, description, points }) => `| ${id} | \`${key}\` | ${name} | ${description} | ${points} |`
  )
  t.same(
    text.split('\n').filter((line) => /^\| \d/.test(line)),
    rows
  )
  for (const { key, name } of achievements.filter(({ isHidden }) => isHidden === true)) {
    t.notOk(text.includes(key) || text.includes(name), key)
  }
})

test('a veiled achievement shows only the number and points of a hidden one', (t) => {
  for (const achievement of achievements) {
    const { id, key, name, description, points } = achievement
    const shown = veiled(achievement, () => 'https://images.example.org/a.png')
    const unlock = newUnlock({ achievementId: id, points, unlockedMs: 0 })
    t.ok(shownGroups.some(({ groupId }) => groupId === shown.category))
    if (achievement.isHidden !== true) {
      t.match(shown, { id, key, name, description, points, is_hidden: false })
      t.equal(unlock?.achievementName, `${name} (${unlock?.gameName})`)
      t.same(revealedOf(achievement), {})
      continue
    }
    t.same(shown, {
      id,
      key: `hidden-${id}`,
      name: 'Hidden Achievement',
      description: '',
      points,
      is_hidden: true,
      game_title_id: null,
      category: 'hidden',
      image_url: null
    })
    t.same(unlock, {
      unlockedAt: '1970-01-01T00:00:00.000Z',
      achievementId: id,
      achievementKey: `hidden-${id}`,
      achievementName: 'Hidden Achievement',
      gameName: 'Network',
      points
    })
    t.same(revealedOf(achievement), { revealed_name: name, revealed_description: description })
  }
  t.equal(newUnlock({ achievementId: 65_535, points: 5, unlockedMs: 0 }), undefined)
  t.end()
})
