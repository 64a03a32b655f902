import { test } from 'tap'
import { readCatalogue } from '../demo/network/samples.js'
import { provesLiveBoards } from './live-boards.js'
import { RECORDED_TITLE, recordedBoards } from './service/recorded-boards.js'

/** In this hour a board leaves the list and returns empty, and each form of board occurs. */
const SEED = 161

test('constantly changing boards, some with recorded names, scraped for an hour', async (t) => {
  const catalogue = readCatalogue().filter(({ titleId }, at) => at === SEED || titleId === RECORDED_TITLE)
  const some = (await recordedBoards(t)).filter((_board, at) => at % 100 === 7)
  await provesLiveBoards(t, { seed: SEED, catalogue, boards: { [RECORDED_TITLE]: some }, rounds: 8, instants: 25 })
})
