import { buildOperatorApp } from '../operator/operator-app.js'
import { listen } from './listen.js'
import type { Needs } from './service-parts.js'

/** Starts the operator port, and gives its address. */
export async function openOperatorPort({
  config,
  operations,
  registry,
  logger,
  isReady,
  disposers
}: Needs): Promise<string> {
  const { operations: all } = operations
  const app = buildOperatorApp({ operations: all, registry, ready: isReady, logger, host: config.OPERATOR_HOST })
  disposers.add(app, () => app.close())
  return await listen(app, config.OPERATOR_HOST, config.OPERATOR_PORT, 'OPERATOR_PORT')
}
