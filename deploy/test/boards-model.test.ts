import { test } from 'tap'
import { provesModel } from './boards-model.js'

test('all answers about boards equal a plain model of the scrapes and imports', (t) =>
  provesModel(t, { seed: 11, runs: 3 }))
