import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Teardown } from './test-app.js'

/** A faulty answer. */
export type Fault = 'hang' | 'reset' | '500' | 'html' | 'half' | 'odd' | 'redirect' | 'huge' | 'echo'

type Answer = { readonly status: number; readonly body: unknown; readonly isPage?: boolean }

/** A real server with the answers of a test, and faulty answers on request. */
class TestServer {
  url = ''
  fault: Fault | undefined
  /** Called before each answer, so that a test can delay it. */
  hold: () => Promise<void> = async () => undefined

  async start(t: Teardown, answer: (request: IncomingMessage, body: string) => Answer): Promise<void> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const good = answer(request, Buffer.concat(chunks).toString('utf8'))
        void this.hold().then(() => send(response, good, this.fault, Buffer.concat(chunks)))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
  }
}

function send(response: ServerResponse, good: Answer, fault: Fault | undefined, asked: Buffer): void {
  const body = JSON.stringify(good.body)
  const answer = (status: number, text: string, headers: Record<string, string> = {}) =>
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(text)
  if (good.isPage === true) answer(good.status, '<!doctype html><h1>No</h1>', { 'Content-Type': 'text/html' })
  else if (fault === undefined) answer(good.status, body)
  else if (fault === 'reset') response.socket?.resetAndDestroy()
  else if (fault === '500') answer(500, '{"error":"out of order"}')
  else if (fault === 'html') answer(200, '<!doctype html><h1>Welcome</h1>', { 'Content-Type': 'text/html' })
  else if (fault === 'echo') response.socket?.end(asked)
  else if (fault === 'half') answer(200, body.slice(0, -4))
  else if (fault === 'odd') answer(200, '{"valid":"yes","username":7,"id":"1"}')
  else if (fault === 'redirect') answer(302, body, { Location: '/elsewhere' })
  else if (fault === 'huge') answer(200, `${body.slice(0, -1)},"more":"${'x'.repeat(100_000)}"}`)
}

/** An auth service: the user of each session key. */
export class TestAuth extends TestServer {
  readonly sessions = new Map<string, { username: string; email?: string; gamertag?: string | null }>()
  /** Returns how a key is refused; undefined for a key that is verified. */
  refuse: (sessionKey: string) => { readonly status: number; readonly isPage: boolean } | undefined = () => undefined
  /** The verified keys. */
  readonly asked: string[] = []

  static async open(t: Teardown): Promise<TestAuth> {
    const auth = new TestAuth()
    await auth.start(t, (request, body) => {
      if (request.method !== 'POST' || request.url !== '/api/auth/verify') return { status: 404, body: {} }
      const { sessionKey } = JSON.parse(body) as { sessionKey: string }
      auth.asked.push(sessionKey)
      const refused = auth.refuse(sessionKey)
      if (refused !== undefined) return { ...refused, body: { error: 'no' } }
      const user = auth.sessions.get(sessionKey)
      return user === undefined
        ? { status: 401, body: { valid: false } }
        : { status: 200, body: { valid: true, ...user } }
    })
    return auth
  }
}

/** A chat platform: its accounts, each with the name of its avatar. */
export class TestChat extends TestServer {
  readonly token = 'chat-token'
  readonly accounts = new Map<string, string | null>()
  readonly asked: string[] = []

  static async open(t: Teardown): Promise<TestChat> {
    const chat = new TestChat()
    await chat.start(t, (request) => {
      const id = request.url?.slice('/users/'.length) ?? ''
      chat.asked.push(id)
      const avatar = chat.accounts.get(id)
      if (request.headers.authorization !== `Bot ${chat.token}`) return { status: 401, body: { message: 'no' } }
      if (avatar === undefined) return { status: 404, body: { message: 'Unknown user' } }
      return { status: 200, body: { id, username: 'somebody', global_name: null, avatar } }
    })
    return chat
  }
}
