import { beginCampaign } from '@gamenet/engines/testing'

beginCampaign()
for (const noun of [
  ...[
    'achievement',
    'engine',
    'known-at',
    'leaderboard-as-of',
    'leaderboard-change',
    'match-list',
    'network-count',
    'player'
  ],
  ...['player-comparison', 'profile', 'profile-edit', 'rating', 'search', 'timeline', 'title-count']
]) {
  await import(`./${noun}.test.js`)
}
