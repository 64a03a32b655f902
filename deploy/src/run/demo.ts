import type { Projector } from '@gamenet/projector'
import { pause } from '@gamenet/schemas'
import { type Demo, startDemo } from '../../demo/demo.js'
import type { Needs } from './dependencies.js'

const RETRY_MS = 1000

/** The demo network. Only a process with the API has sessions and reads chat accounts. */
export function openDemo({ config, role, logger }: Needs): Promise<Demo> {
  const hasApi = role === 'all'
  return startDemo(logger, {
    withAuth: hasApi && config.AUTH_URL === undefined,
    withChat: hasApi && config.CHAT_API_URL === undefined,
    hasPast: config.DEMO === 'full'
  })
}

/** Fills in the demo network's history in the background, until it is stopped. */
export function fillDemo(needs: Needs): { stop(): Promise<void> } | undefined {
  const { demo, engines, people, projector, api } = needs
  const { directory, disk, log } = engines
  if (demo === undefined || projector === undefined || directory === undefined || api === undefined) return undefined
  const beforeEachPart = async (signal: AbortSignal) => {
    await disk.whenSpace(signal)
    // Waits for tables that are away, too: no other start than the next would continue the history.
    while (!signal.aborted && !(await isCaughtUp(projector, signal))) await pause(RETRY_MS, signal)
  }
  return { stop: demo.fill({ log, people, apiUrl: api, fileNamed: directory.part, beforeEachPart }) }
}

function isCaughtUp(projector: Pick<Projector, 'caughtUp'>, signal: AbortSignal): Promise<boolean> {
  return projector.caughtUp({ signal }).then(
    () => true,
    () => false
  )
}
