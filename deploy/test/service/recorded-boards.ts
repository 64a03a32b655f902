import { readFile } from 'node:fs/promises'
import type { Test } from 'tap'
import type { GivenBoard } from '../../demo/network/boards.js'
import { sharedFile } from './recorded.js'

/** The title with hundreds of boards. */
export const RECORDED_TITLE = '4d53004b'

/** The boards of {@link RECORDED_TITLE} as recorded; without them as many of the same shape. */
export async function recordedBoards(t: Test): Promise<readonly GivenBoard[]> {
  const path = await sharedFile(`leaderboard-names-${RECORDED_TITLE}.json`)
  if (path !== undefined) return JSON.parse(await readFile(path, 'utf8'))
  t.comment('NO ../shared/data, so names of the same number and shape are made up')
  return Array.from({ length: 494 }, (_, n) => ({ leaderboardId: n + 1, name: `Arcade <${n % 90}> & "Track" – ${n}` }))
}
