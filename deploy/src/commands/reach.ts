import { stat } from 'node:fs/promises'
import { type Config, FailureError } from '../config.js'
import { runningOperatorUrl } from '../data-directory.js'
import type { Operations } from '../operations/operation.js'
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
  const { openService } = await import('../wiring/service.js')
  const service = await openService(config, 'offline', terminal.threadPoolSize)
  try {
    return await use(service.operations, false)
  } finally {
    await service.close()
  }
}

/** The same, for commands that have nothing to do where there is nothing: throws there instead of making an empty service. */
export async function withData<Answer>(
  terminal: Terminal,
  use: (operations: Operations, isRunning: boolean) => Promise<Answer>
): Promise<Answer> {
  const config = terminal.config()
  if (config.OPERATOR_URL === undefined && !(await dataExists(config))) {
    throw new FailureError(
      `There is no service and no data in ${config.DATA_DIR}; \`npm start\` makes both, DATA_DIR or OPERATOR_URL names another.`
    )
  }
  return await withOperations(terminal, use)
}

/** Whether there is anything that a command could open. */
async function dataExists(config: Config): Promise<boolean> {
  if (config.KAFKA_BROKERS !== undefined && config.CLICKHOUSE_URL !== undefined) return true
  return stat(config.DATA_DIR).then(
    () => true,
    () => false
  )
}
