import { randomInt } from 'node:crypto'
import { test } from 'tap'
import { provesModel } from './boards-model.js'

test('all answers about boards equal a plain model of the scrapes and imports, in many worlds', async (t) => {
  const seed = randomInt(2 ** 31)
  t.comment(`seed ${seed}`)
  await provesModel(t, { seed, runs: 200 })
})
