import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** An HTTP server on a free port that gives the ordered answers, counts its requests, and ends with the test. */
export async function startPageServer(t: Test, answer: Answer) {
  const requests: IncomingMessage[] = []
  let atOnce = 0
  let atOnceMax = 0
  const server = createServer((request, response) => {
    requests.push(request)
    atOnce += 1
    atOnceMax = Math.max(atOnceMax, atOnce)
    response.on('close', () => {
      atOnce -= 1
    })
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, requests, atOnceMax: () => atOnceMax }
}

/** Sends a page as HTML. */
export function sendHtml(response: ServerResponse, html: string, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers }).end(html)
}
