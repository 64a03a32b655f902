import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import type { FromReader } from '@gamenet/projector/loader'
import { encodeEvent, instantOf, titleCountTopic } from '@gamenet/schemas'
import { test } from 'tap'
import { openLog } from '../src/stores/log.js'
import { readingThread } from '../src/stores/reading-thread.js'

const MESSAGES = 50_000
const ROUNDS = 4

test('a reader thread that is stopped during a backlog ends without harm to the process', async (t) => {
  const choice = { engine: 'lmdb', path: t.testdir({}), epoch: 0 } as const
  const log = await openLog(choice, 'test')
  const messages = Array.from({ length: MESSAGES }, (_, n) =>
    encodeEvent(
      titleCountTopic,
      { titleId: '4d530002', observedAt: instantOf(60_000 * n), online: n, sessions: 0, lobbyPlayers: 0 },
      { source: '/test' }
    )
  )
  await log.append(titleCountTopic.name, messages)
  await log.close()
  for (let round = 0; round < ROUNDS; round += 1) {
    const only = { topic: titleCountTopic.name, group: 'test', share: { index: 0, of: 1 } }
    const { port, ended, close } = readingThread({ choice, only })
    const stopped = new Promise<void>((resolve) => {
      port.on('message', (message) => {
        const { kind, id } = message as FromReader & { id: number }
        if (kind === 'start-at') port.postMessage({ kind, id, next: 0 })
        else if (kind === 'seal-keys') port.postMessage({ kind, id, keys: new Map() })
        else if (kind === 'batch') port.postMessage({ kind: 'stop' })
        else if (kind === 'stopped') resolve()
      })
    })
    const code = once(port as Worker, 'exit')
    await stopped
    await close()
    await ended
    t.same(await code, [0], 'it ended without a kill')
  }
})
