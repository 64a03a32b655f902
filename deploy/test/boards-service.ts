import { join } from 'node:path'
import type { Test } from 'tap'
import { z } from 'zod'
import { ask } from './service/ask.js'
import { type Environment, gamenetJson, ON_REQUEST, type Opened, openGamenet, plainWrites } from './service/gamenet.js'

/** No server listens there: a service that scrapes only on request needs no network. */
const NO_NETWORK = 'http://127.0.0.1:9'
const CAUGHT_UP_SECONDS = '180'

export type TestService = {
  readonly running: Opened
  readonly environment: Environment
  /** Folder for files of the test; the service has a subfolder. */
  readonly directory: string
  /** Waits until all events of the log are readable. */
  caughtUp(): Promise<void>
  /** Returns the body of an answer; the status must be 200. */
  get(path: string): Promise<unknown>
}

/**
 * A complete service in the test's folder without scheduled scrapes. @param engines default: embedded tables and log
 */
export async function startQuietService(
  t: Test,
  upstreamUrl = NO_NETWORK,
  engines: Environment = {}
): Promise<TestService> {
  const directory = t.testdir({})
  const environment = {
    DATA_DIR: join(directory, 'data'),
    ...ON_REQUEST,
    UPSTREAM_URL: upstreamUrl,
    SCRAPE_REQUESTS_PER_SECOND: '1000',
    ...(await plainWrites(t)),
    ...engines
  }
  const running = await openGamenet(t, environment)
  return {
    running,
    environment,
    directory,
    caughtUp: async () => {
      const report = z
        .object({ wait: z.object({ caughtUp: z.boolean(), behind: z.array(z.string()) }) })
        .parse(await gamenetJson(environment, ['status', '--wait', CAUGHT_UP_SECONDS]))
      if (!report.wait.caughtUp) throw new Error(`not caught up: ${report.wait.behind.join('; ')}`)
    },
    get: async (path) => {
      const { status, body, text } = await ask(`${running.apiUrl}${path}`)
      if (status !== 200) throw new Error(`${path} answered ${status}: ${text.slice(0, 500)}`)
      return body
    }
  }
}
