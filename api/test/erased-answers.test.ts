import { Refusal } from '@gamenet/schemas'
import { test } from 'tap'
import { testApp } from './support/test-app.js'

const URL = '/api/counts?days=2'
const CHANGE = { projection: 'network-count', fromMs: 0, toMs: 4_000_000_000_000 }

test('dropped answers, cached or under way, are not sent again while the tables are unavailable', async (t) => {
  let drop: () => void = () => undefined
  const { app, tables, versions } = await testApp(t, {
    onDrop: (given) => {
      drop = given
    }
  })
  const change = async (version: number) => {
    tables.changes.push({ version, ...CHANGE })
    await versions.refresh()
  }
  tables.answer = async () => [{ online: 12 }]
  t.match(await app.inject(URL), { statusCode: 200 })
  await change(2_000_000)
  tables.answer = async () => {
    throw new Refusal('engine_away')
  }
  t.match(await app.inject(URL), { statusCode: 200, headers: { age: String } }, 'what was known before')
  drop()
  t.match(await app.inject(URL), { statusCode: 503 })

  tables.answer = async () => {
    drop()
    return [{ online: 13 }]
  }
  t.match(await app.inject(URL), { statusCode: 200 }, 'earlier callers are answered')
  await change(3_000_000)
  tables.answer = async () => {
    throw new Refusal('engine_away')
  }
  t.match(await app.inject(URL), { statusCode: 503 })
})
