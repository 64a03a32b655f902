import { nameKey } from '@gamenet/schemas'
import { test } from 'tap'
import { NOW_MS, storeDescriptions, storeTitles } from './board-api.js'
import { openProfileApi } from './profile-api.js'

const HALO = '4d530001'
const RIDE = '4d530002'

async function openSearch(t: Parameters<typeof openProfileApi>[0]) {
  const api = await openProfileApi(t)
  await storeTitles(api.model, { [HALO]: 'Halo 2', [RIDE]: 'Big  Halo Ride' })
  await storeDescriptions(api.model, [
    [HALO, 1, NOW_MS, 'Ranked - Foundry', true],
    [HALO, 2, NOW_MS, 'Halo laps', false],
    [RIDE, 1, NOW_MS, 'Foundry', true]
  ])
  const named = ['Haloman', 'HALOMAN', 'Foundryman', 'the halo']
  const players = named.map((name) => [nameKey(name), name])
  await api.model.insert('player', ['player_key', 'player'], players)
  const profiles = [
    ['halouser', 'HaloUser', 2],
    ['halouser', 'halouser', 1]
  ]
  await api.model.insert('profile', ['user_key', 'username', 'revision'], profiles)
  await api.storePresence('halouser', [{ field: 'username', value: 'HALOUSER', ms: NOW_MS }])
  await api.storePresence('halo two', [
    { field: 'username', value: 'Halo Two', ms: NOW_MS },
    { field: 'gamertag', value: 'Other', ms: NOW_MS }
  ])
  await api.changed('title', 'leaderboard', 'player', 'profile', 'presence-latest')
  const found = async (q: string, more = '') =>
    (await api.get(`/api/search?q=${encodeURIComponent(q)}${more}`)).json().map(Object.values)
  return { ...api, found }
}

test('games, boards, players and users are found by their names, those that begin with the text first', async (t) => {
  const { found, get } = await openSearch(t)
  t.same(await found('hALo'), [
    ['game', 'Halo 2', HALO],
    ['game', 'Big  Halo Ride', RIDE],
    ['board', 'Halo laps', HALO, 'Halo 2', 2, false],
    ['player', 'HALOMAN'],
    ['user', 'Halo Two'],
    ['user', 'HaloUser']
  ])
  t.same(await found('hALo', '&limit=1'), [
    ['game', 'Halo 2', HALO],
    ['board', 'Halo laps', HALO, 'Halo 2', 2, false],
    ['player', 'HALOMAN'],
    ['user', 'Halo Two']
  ])
  const csv = (await get('/api/search?q=halo%20laps&format=csv')).body
  t.equal(csv.split('\n')[1], `"board","Halo laps","${HALO}","Halo 2",2,false`)
})

test('a board is found by words of its name and of its game, but not by its game alone', async (t) => {
  const { found } = await openSearch(t)
  t.same(await found('foundry halo 2'), [['board', 'Ranked - Foundry', HALO, 'Halo 2', 1, true]])
  t.same(
    (await found('foundry')).map(([kind, name]: string[]) => [kind, name]),
    [
      ['board', 'Foundry'],
      ['board', 'Ranked - Foundry'],
      ['player', 'Foundryman']
    ]
  )
  t.same(await found('ride'), [['game', 'Big  Halo Ride', RIDE]])
})

test('text without a match, with characters of patterns, or of blanks finds nothing', async (t) => {
  const { found, get } = await openSearch(t)
  for (const q of ['%', '_', '\\', 'halo zzz', "'"]) t.same(await found(q), [])
  t.equal((await get('/api/search?q=')).statusCode, 400)
  t.same((await get('/api/search?q=%20')).statusCode, 200)
})
