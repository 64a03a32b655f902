import type { Projector } from '@gamenet/projector'
import { errorMessage, pause } from '@gamenet/schemas'
import { type Demo, startDemo } from '../../demo/demo.js'
import type { Needs } from './dependencies.js'

const RETRY_MS = 1000
/** Interval at which the log says why the history waits. */
const SAY_MS = 30_000

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
  const { demo, engines, people, projector, api, logger } = needs
  const { directory, disk, log } = engines
  if (demo === undefined || projector === undefined || directory === undefined || api === undefined) return undefined
  const beforeEachPart = async (signal: AbortSignal) => {
    await disk.whenSpace(signal)
    // Waits for tables that are away, too: no other start than the next would continue the history.
    let saidAt = performance.now()
    const onWait = (reason: string) => {
      if (performance.now() - saidAt < SAY_MS) return
      saidAt = performance.now()
      logger.warn({ reason }, "the demo network's history waits for the tables")
    }
    while (!signal.aborted && !(await isCaughtUp(projector, signal, onWait))) await pause(RETRY_MS, signal)
  }
  return { stop: demo.fill({ log, people, apiUrl: api, fileNamed: directory.part, beforeEachPart }) }
}

/** Whether the tables have all that the log has; if not, `onWait` gets the reason. */
async function isCaughtUp(
  projector: Pick<Projector, 'caughtUp'>,
  signal: AbortSignal,
  onWait: (reason: string) => void
): Promise<boolean> {
  try {
    await projector.caughtUp({ signal })
    return true
  } catch (error) {
    onWait(errorMessage(error))
    return false
  }
}
