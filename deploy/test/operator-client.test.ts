import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { freePort } from '@gamenet/engines/testing'
import { test } from 'tap'
import { rebuild } from '../src/operations/rebuild.js'
import { operatorClient } from '../src/operator/operator-client.js'

test('a client of a service that ends meanwhile learns that it may be done, and how to find out', async (t) => {
  for (const end of [
    (response: ServerResponse) => void response.destroy(),
    (response: ServerResponse) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('{', () => response.destroy())
    }
  ]) {
    const server = createServer((_request, response) => end(response)).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await t.rejects(operatorClient({ operatorUrl: url }).run(rebuild.swap, { projection: 'title-count' }), {
      message: /ended before it had answered \((ECONNRESET|UND_ERR_SOCKET)\): .* unknown whether .* gamenet status\./
    })
    server.close()
  }
  const nowhere = `http://127.0.0.1:${await freePort()}`
  await t.rejects(operatorClient({ operatorUrl: nowhere }).run(rebuild.swap, { projection: 'title-count' }), {
    message: /cannot be reached \(ECONNREFUSED\)/
  })
})
