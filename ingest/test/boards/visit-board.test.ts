import type { LeaderboardEntryChanged } from '@gamenet/schemas'
import { test } from 'tap'
import type { BoardLease, BoardLeases, EqualPage } from '../../src/boards/board-leases.js'
import type { BoardState } from '../../src/boards/last-board.js'
import { neededFor, type VisitBatch, visitBoard } from '../../src/boards/visit-board.js'
import type { GamePage } from '../../src/pages/game-page.js'

const BOARD = { titleId: '4d530064', leaderboardId: 7 }
const EMPTY: GamePage = {
  matches: { ok: true, value: [] },
  boards: { ok: true, value: [{ leaderboardId: 7, name: 'Sprint' }] },
  board: { ok: true, value: { leaderboardId: 7, entries: [] } }
}

/** Visits a board with an empty page, once per given state of the tables; returns the changes of the last visit. */
async function visits(states: readonly (BoardState | undefined)[]): Promise<readonly LeaderboardEntryChanged[]> {
  let equal: EqualPage | null = null
  let found: readonly LeaderboardEntryChanged[] = []
  const leases = {
    renew: async () => true,
    setBoards: async () => ({ added: 0 }),
    end: async (_: BoardLease, visited: { equal: EqualPage | null }) => {
      equal = visited.equal
      return true
    }
  } as Partial<BoardLeases> as BoardLeases
  for (const state of states) {
    const lease: BoardLease = {
      ...BOARD,
      holder: 'a',
      periodS: 60,
      failures: 0,
      wasUnclean: false,
      appended: [],
      equal
    }
    const entry = { playerName: 'ann', occurrence: 1, rating: '4', timeMs: null, order: 1, step: 1, details: '' }
    const batch: VisitBatch = {
      tables: { rows: async () => (state === undefined ? [] : [entry]) },
      reached: { has: () => true },
      headsWhenAcquired: [],
      oldestEpoch: 0,
      states: new Map(state === undefined ? [] : [['4d530064/7', state]]),
      lists: new Map([['4d530064', new Map([[7, { name: 'Sprint', listed: true, observedAtMs: 0 }]])]]),
      areListsKnown: true,
      departed: new Set(),
      listed: new Map(),
      outdated: new Set()
    }
    const visit = await visitBoard(
      {
        parsing: { parse: async () => ({ ok: true, page: EMPTY }) as never, close: async () => {} },
        log: { extents: async () => [] },
        leases: leases,
        shortestS: 60,
        random: () => 0
      },
      {
        fetcher: {
          fetch: async (_, options) =>
            options?.validators?.etag === 'empty'
              ? { ok: true, changed: false, answeredAtMs: 5 }
              : {
                  ...{ ok: true, changed: true, html: '', address: 'http://upstream/games/4d530064?leaderboard=7' },
                  ...{ validators: { etag: 'empty' }, answeredAtMs: 5 }
                },
          close: async () => {}
        },
        publish: async () => {}
      },
      lease,
      batch,
      new AbortController().signal
    )
    found = 'changes' in visit ? visit.changes : []
  }
  return found
}

test('an empty page is compared again after the first entry of its board, even if that is the first event of all', async (t) => {
  const changes = await visits([undefined, { version: '0', newestMs: 1 }])
  t.match(changes, [{ playerName: 'ann', changeType: 'removed' }])
})

test('a board is compared when the tables have what its last visit appended, or all of the log if it may have died', (t) => {
  const headsWhenAcquired = [{ epoch: 2, partition: 0, next: 9 }]
  const appended = [{ epoch: 2, partition: 0, next: 4 }]
  const lease = { ...BOARD, holder: 'a', periodS: 60, failures: 0, wasUnclean: false, appended, equal: null }
  const batch = { headsWhenAcquired, oldestEpoch: 2 }
  t.same(neededFor(lease, batch), appended)
  t.same(neededFor({ ...lease, wasUnclean: true }, batch), headsWhenAcquired, 'after a death')
  t.same(neededFor(lease, { ...batch, oldestEpoch: 3 }), headsWhenAcquired, 'the log no longer has what it appended')
  t.end()
})
