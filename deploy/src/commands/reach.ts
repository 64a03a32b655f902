import { type Config, FailureError } from '../config.js'
import { runningOperatorUrl } from '../data-directory.js'
import type { Operations } from '../operator/operations.js'
import { operatorClient } from '../operator/operator-client.js'
import type { Terminal } from './terminal.js'

/**
 * Runs `use` against the running service where there is one (`OPERATOR_URL`, or the one that `DATA_DIR` names), else
 * against the engines themselves, opened for the time of the call; `isRunning` tells which.
 */
export async function withOperations<Answer>(
  terminal: Terminal,
  use: (operations: Operations, isRunning: boolean) => Promise<Answer>
): Promise<Answer> {
  const config = terminal.config()
  const operatorUrl = config.OPERATOR_URL ?? (await runningOperatorUrl(config.DATA_DIR))
  if (operatorUrl !== undefined) return use(operatorClient(operatorUrl), true)
  // The engines are loaded only where they are opened: asking a running service takes a fifth of the processor time.
  const { openService } = await import('../service/service.js')
  const service = await openService(config, 'offline', terminal.threadPoolSize)
  try {
    return await use(service.operations, false)
  } finally {
    await service.close()
  }
}

/** Throws unless a service runs or its data can be opened: for commands that only look. */
export async function requireData(config: Config, exists: boolean): Promise<void> {
  if (exists || config.OPERATOR_URL !== undefined) return
  throw new FailureError(
    `There is no service and no data in ${config.DATA_DIR}; \`npm start\` makes both, DATA_DIR or OPERATOR_URL names another.`
  )
}
