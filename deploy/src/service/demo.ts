import { publish } from '@gamenet/ingest'
import type { Logger } from 'pino'
import { fillHistory } from '../demo-network/history.js'
import { historyJournalFile } from '../demo-network/history-journal.js'
import { type DemoNetwork, startDemoNetwork } from '../demo-network/server.js'
import type { OpenLog } from './log.js'

const SEED = 1

export type Demo = {
  readonly url: string
  /** How many of the history's events the log has. */
  progress(): { name: string; done: number; total: number }
  /** Fills in the history that a first start lacks, in the background. */
  fill(needs: { log: OpenLog; journalFile: string; beforeEachPart: () => Promise<void> }): void
  close(): Promise<void>
}

/** The demo network, for services that are given no network of their own. */
export async function startDemo(logger: Logger): Promise<Demo> {
  const network: DemoNetwork = await startDemoNetwork({ seed: SEED })
  const stopping = new AbortController()
  let filling: Promise<unknown> = Promise.resolve()
  let progress = { name: 'demo history', done: 0, total: 0 }
  return {
    url: network.url,
    progress: () => progress,
    fill: ({ log, journalFile, beforeEachPart }) => {
      filling = fillHistory({
        world: network.world,
        journal: historyJournalFile(journalFile),
        append: (topic, events, source) => publish(log, topic, events, { source }),
        // The first scrape comes first, and each part is readable before the next is made.
        pause: beforeEachPart,
        onProgress: ({ events, total }) => {
          progress = { name: 'demo history', done: events, total }
        },
        signal: stopping.signal
      }).catch((error: unknown) => {
        if (!stopping.signal.aborted) logger.error({ err: error }, 'the demo history could not be filled in')
      })
    },
    close: async () => {
      stopping.abort()
      await filling
      await network.close()
    }
  }
}
