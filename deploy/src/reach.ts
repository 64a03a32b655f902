import { readdir } from 'node:fs/promises'
import { errorCode } from '@gamenet/schemas'
import { type Config, FailureError } from './config.js'
import { runningOperatorPort } from './data-directory/data-directory.js'
import type { Operation, Operations } from './operate/operation.js'
import type { CommandRole } from './stores/component.js'
import { type Progress, showProgress } from './terminal/progress.js'
import type { Terminal } from './terminal/terminal.js'

/**
 * Runs `use` on the operations of the running service (`OPERATOR_URL`, or the service that `DATA_DIR` names). If none
 * runs, opens the engines for the duration of the call. `isRunning` says which.
 */
export async function withOperations<Answer>(
  terminal: Terminal,
  use: (operations: Operations, isRunning: boolean) => Promise<Answer>,
  role: CommandRole = 'offline'
): Promise<Answer> {
  const config = terminal.config()
  const { OPERATOR_URL: operatorUrl, OPERATOR_TOKEN: operatorToken } = config
  const port = operatorUrl === undefined ? await runningOperatorPort(config.DATA_DIR) : { operatorUrl, operatorToken }
  if (port !== undefined) {
    const { operatorClient } = await import('./operator/operator-client.js')
    return use(operatorClient(port), true)
  }
  // Engines are loaded only when they are opened: without them a command takes a fifth of the processor time.
  const { openService } = await import('./run/service.js')
  const service = await openService(config, role)
  try {
    return await use(service.operations, false)
  } finally {
    await service.close()
  }
}

/**
 * {@link withOperations} for commands that need existing data: throws if there is none instead of creating an empty
 * service.
 */
export async function withData<Answer>(
  terminal: Terminal,
  use: (operations: Operations, isRunning: boolean) => Promise<Answer>,
  role?: CommandRole
): Promise<Answer> {
  const config = terminal.config()
  if (config.OPERATOR_URL === undefined && !(await dataExists(config)))
    throw new FailureError(
      `There is no service and no data in ${config.DATA_DIR}; \`npm start\` creates both, DATA_DIR or OPERATOR_URL ` +
        `names another.`
    )
  return await withOperations(terminal, use, role)
}

/** Returns the line that a command prints if it has asked no process. */
export function noServiceLine({ KAFKA_BROKERS, CLICKHOUSE_URL, DATA_DIR }: Config): string {
  return KAFKA_BROKERS !== undefined && CLICKHOUSE_URL !== undefined
    ? 'No process was queried, because OPERATOR_URL is not set. This is what the log and the tables show.'
    : `No service runs on ${DATA_DIR} (gamenet start). This is what its data show.`
}

/** Returns whether there is data for a command to open. */
async function dataExists(config: Config): Promise<boolean> {
  if (config.KAFKA_BROKERS !== undefined && config.CLICKHOUSE_URL !== undefined) return true
  return readdir(config.DATA_DIR).then(
    (names) => names.length > 0,
    (error: unknown) => errorCode(error) !== 'ENOENT'
  )
}

/** Runs an operation on existing data and shows its progress on standard error, unless `--json` is given. */
export async function runShown<Input, OperationProgress, Result>(
  terminal: Terminal,
  { json = false, role }: { readonly json?: boolean; readonly role?: CommandRole },
  operation: Operation<Input, OperationProgress, Result>,
  input: NoInfer<Input>,
  progressOf: (progress: NoInfer<OperationProgress>) => Progress
): Promise<Result> {
  const display = showProgress(terminal, !json)
  const onProgress = (progress: OperationProgress) => display.update(progressOf(progress))
  return await withData(terminal, (operations) => operations.run(operation, input, { onProgress }), role).finally(
    display.stop
  )
}
