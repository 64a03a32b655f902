import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createNetServer } from 'node:net'
import { freePort } from '@gamenet/engines/testing'
import { test } from 'tap'
import { undoImport } from '../src/operate/import/undo-operation.js'
import { LINES } from '../src/operate/operation.js'
import { rebuild } from '../src/operate/rebuild/operation.js'
import { operatorClient } from '../src/operator/operator-client.js'

test('a client of a service that ends meanwhile learns that the operation may be completed, and how to check', async (t) => {
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

test('a port that lacks an operation, or answers it in another form, is reported with the remedy', async (t) => {
  const lines = { 'content-type': LINES }
  for (const answer of [
    (response: ServerResponse) => response.writeHead(404).end('{"error":"There is nothing at /rebuilds."}'),
    (response: ServerResponse) => response.end('{"renamed":1}'),
    (response: ServerResponse) => response.end('a page'),
    (response: ServerResponse) => response.writeHead(200, lines).end('{"report":{"renamed":1}}\n'),
    (response: ServerResponse) => response.writeHead(200, lines).end('{"progress":{"renamed":1}}\n')
  ]) {
    const server = createServer((_request, response) => void answer(response)).listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    const operatorUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await t.rejects(operatorClient({ operatorUrl }).run(undoImport, { importId: 'a' }), {
      name: 'Error',
      message:
        /^http.* does not answer the retraction as .* gamenet [0-9.]+ does\. .*OPERATOR_URL.*restart it with this one/
    })
  }
})

test('a service that is stopped or hangs does not keep its client waiting, whether or not it had begun to answer', async (t) => {
  for (const begun of ['', `HTTP/1.1 200 OK\r\ncontent-type: ${LINES}\r\ntransfer-encoding: chunked\r\n\r\n`]) {
    const server = createNetServer((socket) => {
      socket.on('error', () => undefined)
      // As a stopped process, whose kernel still accepts connections; `/healthz` never gets a reply.
      socket.once('data', (bytes) => String(bytes).startsWith('POST') && socket.write(begun))
      t.teardown(() => socket.destroy())
    }).listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    const operatorUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    await t.rejects(operatorClient({ operatorUrl }, { everyMs: 5, withinMs: 50 }).run(undoImport, { importId: 'a' }), {
      message: /gives no sign of life: .* gamenet status/
    })
  }
})

test('an operation that takes long goes on while the service replies to others', async (t) => {
  let checks = 0
  const server = createServer((request, response) => {
    if (request.method === 'GET') checks += 1
    if (request.method === 'GET') response.end('{}')
    if (checks === 3) waiting?.end('{"renamed":1}')
    if (request.method === 'POST') waiting = response
  }).listen(0, '127.0.0.1')
  let waiting: ServerResponse | undefined
  t.teardown(() => server.close())
  await once(server, 'listening')
  const operatorUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await t.rejects(
    operatorClient({ operatorUrl }, { everyMs: 5, withinMs: 60_000 }).run(undoImport, { importId: 'a' }),
    {
      message: /does not answer/
    }
  )
  t.ok(checks >= 3)
})
