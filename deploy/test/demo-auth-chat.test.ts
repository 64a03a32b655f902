import { pino } from 'pino'
import { test } from 'tap'
import { startDemoChat } from '../demo/chat/server.js'
import { USER_COUNT, usernameOf } from '../demo/network/players.js'

const SEED = 7

test('a chat account is found by its id and a token, with its picture; others are not', async (t) => {
  const requestedIds: string[] = []
  const chat = await startDemoChat({ seed: SEED, onRequest: (id) => requestedIds.push(id) })
  t.teardown(() => chat.close())
  const names = Array.from({ length: USER_COUNT }, (_, user) => usernameOf(SEED, user))
  const accounts = names.flatMap((name) => chat.accountOf(name) ?? [])
  t.ok(accounts.length > USER_COUNT / 2 && accounts.length < USER_COUNT, 'most users have one, some none')
  t.equal(new Set(accounts.map(({ id }) => id)).size, accounts.length)
  t.ok(accounts.every(({ id }) => /^\d{17,20}$/.test(id)))
  t.ok(accounts.some(({ global_name }) => global_name === null))
  t.ok(accounts.some(({ avatar }) => avatar === null))
  const get = async (id: string, authorization = `Bot ${chat.token}`) => {
    const response = await fetch(`${chat.url}/users/${id}`, { headers: { authorization } })
    return { status: response.status, body: await response.json() }
  }
  for (const account of accounts.slice(0, 8)) {
    t.same(await get(account.id), { status: 200, body: account })
    const { avatar } = account
    if (avatar === null) continue
    const picture = await fetch(chat.avatarUrl.replace('{id}', account.id).replace('{avatar}', avatar))
    t.equal(picture.headers.get('content-type'), 'image/svg+xml')
    t.match(await picture.text(), /^<svg /)
  }
  const [account] = accounts
  t.equal((await get('10000000000000000')).status, 404)
  t.equal((await get(account?.id ?? '', 'Bot wrong')).status, 401)
  t.equal((await get(account?.id ?? '', chat.token)).status, 401)
  t.equal(requestedIds.at(-1), account?.id)
  t.equal((await fetch(chat.avatarUrl)).status, 404)
})

test('the chat platform is slow, fails, or answers HTML on request, and its token is in no log', async (t) => {
  const lines: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) })
  const chat = await startDemoChat({ seed: SEED, token: 'very-secret', slowMs: 1, logger })
  t.teardown(() => chat.close())
  const { id = '' } = chat.accountOf(usernameOf(SEED, 0)) ?? {}
  const get = () => fetch(`${chat.url}/users/${id}`, { headers: { authorization: 'Bot very-secret' } })
  chat.orderFault({ fault: 'slow' })
  t.equal((await get()).status, 200)
  chat.orderFault({ fault: '500' })
  t.equal((await get()).status, 500)
  chat.orderFault({ fault: 'garbage' })
  t.match(await (await get()).text(), /^<!doctype html>/)
  chat.orderFault({ fault: 'down' })
  await t.rejects(get(), /fetch failed/)
  t.equal((await get()).status, 200)
  t.ok(lines.length > 0)
  t.notMatch(lines.join(''), 'very-secret')
})
