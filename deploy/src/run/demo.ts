import { type Demo, startDemo } from '../../demo/demo.js'
import type { Needs } from './dependencies.js'

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
    await projector.caughtUp()
  }
  return { stop: demo.fill({ log, people, apiUrl: api, fileNamed: directory.part, beforeEachPart }) }
}
