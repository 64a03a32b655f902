const AT = '2026-03-14T20:00:00Z'
const IMPORT = '0123456789abcdef0123456789abcdef'

type Sample = readonly [topic: string, source: string, key: string, event: Readonly<Record<string, unknown>>]

/** One event of each kind, the most frequent last. */
const SAMPLES: readonly Sample[] = [
  ['profile', '/write-side', '1', { people: [1], sealed: '1.' }],
  ['rating', '/write-side', '1', { people: [1, 2], sealed: '1.' }],
  ['import-run', `/import/${IMPORT}`, IMPORT, importRun({ topic: 'title-count', file: 'history.csv.gz' })],
  ['import-run', `/import/${IMPORT}`, IMPORT, importRun({ topic: 'network-count', file: 'counts.csv' })],
  ['title', '/scrape/games', '4d530064', title({ publisher: 'p', releaseDate: '2004-11-09' })],
  [
    'title',
    '/scrape/network',
    '4d530064',
    title({ features: ['live-aware', 'matchmaking', 'leaderboards', 'user-content'] })
  ],
  ['achievement-unlock', '/achievements', '1', { people: [1], sealed: '1.' }],
  ['leaderboard', '/scrape/boards', '4d530064/1', { titleId: '4d530064', leaderboardId: 1, name: 'n', observedAt: AT }],
  [
    'match-list',
    '/scrape/matches',
    '4d530064',
    { titleId: '4d530064', observedAt: AT, matches: [{ hostName: 'h', currentPlayers: 3, maxPlayers: 8 }] }
  ],
  ['leaderboard-entry', '/scrape/boards', '4d530064/1', entry('removed')],
  ['leaderboard-entry', '/scrape/boards', '4d530064/1', entry('updated')],
  ['leaderboard-entry', '/scrape/boards', '4d530064/1', entry('new')],
  ['presence', '/scrape/players', '1', { people: [1], sealed: '1.' }],
  ['network-count', `/import/${IMPORT}`, 'network', { observedAt: AT, online: 5 }],
  ['title-count', `/import/${IMPORT}`, '4d530064', { titleId: '4d530064', observedAt: AT, online: 5 }],
  ['title-count', '/scrape/network', '4d530064', titleCount()],
  ['scrape', '/scrape/players', 'players', scrape('players', { outcome: 'failed', published: 0, reason: 'r' })],
  ['scrape', '/scrape/matches', 'matches', scrape('matches', { outcome: 'partial', published: 0, reason: 'r' })],
  ['scrape', '/scrape/games', 'games', scrape('games', { outcome: 'succeeded', published: 200 })],
  ['scrape', '/scrape/boards', 'boards', scrape('boards', { outcome: 'succeeded', published: 200 })],
  ['scrape', '/scrape/network', 'network', scrape('network', { outcome: 'succeeded', published: 200 })],
  ['network-count', '/scrape/network', 'network', { observedAt: AT, registered: 20000, online: 500, lobbies: 40 }]
]

/**
 * Preset dictionary of deflate for small batches. It is part of the format: a change of one byte makes existing batches
 * unreadable, so a better one needs a new number in the frame.
 */
export const DICTIONARY = Buffer.from(SAMPLES.map(batchOf).join(''))

/** Returns the JSON of a batch of one message. */
function batchOf([topic, source, key, event]: Sample): string {
  const headers = {
    ce_specversion: '1.0',
    ce_type: `gamenet.${topic}.v1`,
    ce_source: source,
    ce_id: `${topic}/${key}@${AT}`,
    ce_time: AT,
    'content-type': 'application/json',
    ...(source.startsWith('/import/') ? { ce_importid: IMPORT } : {})
  }
  return JSON.stringify([1, key, JSON.stringify(event), Object.entries(headers)])
}

function importRun(about: { readonly topic: string; readonly file: string }) {
  const counts = { rowsRead: 100, published: 100, rejected: 0, finished: false }
  return { importId: IMPORT, observedAt: AT, ...about, ...counts }
}

function title(more: Readonly<Record<string, unknown>>) {
  const image = 'https://images.example/MS100.svg'
  return { titleId: '4d530064', observedAt: AT, name: 'n', title: 't', image, productCode: 'MS-100', ...more }
}

function entry(changeType: string) {
  const measure = { rank: 1, rating: '1', order: 4294967296, step: 1, timeMs: 1 }
  return { titleId: '4d530064', leaderboardId: 1, playerName: 'p', changeType, changedAt: AT, ...measure }
}

function titleCount() {
  return { titleId: '4d530064', observedAt: AT, online: 5, sessions: 1, lobbyPlayers: 3 }
}

function scrape(source: string, result: Readonly<Record<string, unknown>>) {
  return { source, observedAt: AT, durationMs: 100, ...result }
}
