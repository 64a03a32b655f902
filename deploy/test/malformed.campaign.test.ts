import { test } from 'tap'
import { startGamenet } from './service/gamenet.js'
import { provesRefusalOfMalformed } from './service/malformed.js'

const REQUESTS = 50_000

test(`${REQUESTS} malformed and smuggling requests are refused, and the service continues`, async (t) => {
  const service = await startGamenet({ DATA_DIR: t.testdir() })
  t.teardown(() => service.kill())
  await provesRefusalOfMalformed(t, service.apiUrl ?? '', { seed: 1, requests: REQUESTS })
  t.ok(service.isAlive(), 'the service lives')
})
