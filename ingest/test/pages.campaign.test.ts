import { beginCampaign } from '@gamenet/engines/testing'

beginCampaign()
for (const properties of [
  ...['pages/home-page-fuzz', 'pages/game-page-fuzz', 'pages/games-page-fuzz', 'pages/players-page'],
  ...['import-rows', 'import-matches', 'import-time', 'boards/diff-board', 'boards/order-keys']
]) {
  await import(`./${properties}.test.js`)
}
