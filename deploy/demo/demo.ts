import { type People, publish } from '@gamenet/ingest'
import type { Logger } from 'pino'
import { Disposers } from '../src/stores/disposers.js'
import type { OpenLog } from '../src/stores/log.js'
import { actAsPeople } from './activity.js'
import type { DemoPerson } from './auth/people.js'
import { type DemoAuth, startDemoAuth } from './auth/server.js'
import { type DemoChat, startDemoChat } from './chat/server.js'
import { fillHistory } from './network/history.js'
import { historyJournalFile } from './network/history-journal.js'
import { type DemoNetwork, startDemoNetwork } from './network/server.js'
import { createWorld } from './network/world.js'

const SEED = 1

export type Demo = {
  readonly url: string
  /** The auth service; undefined if the service has another one, or none. */
  readonly auth: Pick<DemoAuth, 'url'> | undefined
  readonly chat: Pick<DemoChat, 'url' | 'token' | 'hosts' | 'avatarUrl'> | undefined
  /** A user to sign in as: with a gamertag and an account of the chat platform. */
  readonly person: DemoPerson | undefined
  /** Progress of the history: `done` of `total` events are in the log. */
  progress(): { name: string; done: number; total: number }
  /** Whether the history lacks events that achievements depend on: a part of them looks like a pause of months. */
  isUsersHistoryMissing(): boolean
  /** Fills in the history that a first start lacks, in the background. Returns the function that stops it. */
  fill(needs: FillNeeds): () => Promise<void>
  close(): Promise<void>
}

type FillNeeds = {
  readonly log: OpenLog
  readonly people: People
  /** The address of the service. */
  readonly apiUrl: string
  /** Returns the absolute path of a file next to the engines' directories. */
  readonly fileNamed: (name: string) => string
  readonly beforeEachPart: (signal: AbortSignal) => Promise<void>
}

type DemoOptions = {
  readonly withAuth: boolean
  readonly withChat: boolean
  /** Boards have a history of two years, and achievements are evaluated when it is complete. */
  readonly hasPast: boolean
}

/**
 * Opens the demo network for a service without UPSTREAM_URL, with an auth service and a chat platform for its users
 * unless the service has others. All of them listen on loopback only.
 */
export async function startDemo(logger: Logger, { withAuth, withChat, hasPast }: DemoOptions): Promise<Demo> {
  const disposers = new Disposers()
  try {
    const world = createWorld(SEED, { hasPast })
    const network = disposers.add(await startDemoNetwork({ seed: SEED, world }), (network) => network.close())
    const auth = withAuth ? disposers.add(await startDemoAuth({ network }), (auth) => auth.close()) : undefined
    const chat = withChat ? disposers.add(await startDemoChat({ seed: SEED }), (chat) => chat.close()) : undefined
    const person = auth?.people.find(({ username, gamertag }) => gamertag !== undefined && chat?.accountOf(username))
    const { progress, isUsersHistoryMissing, fill } = historyFilling({ network, auth, chat, logger })
    return {
      url: network.url,
      auth,
      chat,
      person: person ?? auth?.people[0],
      progress,
      isUsersHistoryMissing,
      fill,
      close: () => disposers.close()
    }
  } catch (error) {
    await disposers.close()
    throw error
  }
}

function historyFilling({
  network,
  auth,
  chat,
  logger
}: {
  readonly network: DemoNetwork
  readonly auth: DemoAuth | undefined
  readonly chat: DemoChat | undefined
  readonly logger: Logger
}): Pick<Demo, 'progress' | 'isUsersHistoryMissing' | 'fill'> {
  const stopping = new AbortController()
  const { signal } = stopping
  let progress = { name: 'demo history', done: 0, total: 0 }
  let isMissing = false
  const history = ({ log, people, fileNamed, beforeEachPart }: FillNeeds) =>
    fillHistory({
      world: network.world,
      journal: historyJournalFile(fileNamed('demo-history.json')),
      append: (topic, events, source) => publish(log, topic, events, { source }, people),
      // After the first scrape; each part is readable before the next one is written.
      pause: () => beforeEachPart(signal),
      onProgress: ({ events, total, isOfUsers }) => {
        progress = { name: 'demo history', done: events, total }
        isMissing = isOfUsers && network.world.hasPast
      },
      signal
    })
  return {
    progress: () => progress,
    isUsersHistoryMissing: () => isMissing,
    fill: (needs) => {
      const logged = (what: string) => (error: unknown) => {
        if (!signal.aborted) logger.error({ err: error }, what)
      }
      const { apiUrl, fileNamed } = needs
      const doneFile = fileNamed('demo-people-acted')
      const filling = Promise.all([
        history(needs)
          .catch(logged('the demo history could not be filled in'))
          .finally(() => {
            isMissing = false
          }),
        auth === undefined
          ? undefined
          : actAsPeople({ seed: SEED, apiUrl, auth, chat, doneFile, signal }).catch(
              logged('the activity of the demo users failed')
            )
      ])
      return async () => {
        stopping.abort()
        await filling
      }
    }
  }
}
