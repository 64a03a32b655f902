import { LogDamaged } from '@gamenet/engines/log'
import type { Logger } from 'pino'
import type { Engines } from '../stores/engines.js'
import type { Dependencies } from './dependencies.js'

/**
 * Reads the keys of the embedded log in the background, after the process before ended without a stop, as in a power
 * cut. A damaged page may end this process later; the start after that reads the keys first.
 * @returns how to stop it
 */
export function readUncleanLog({
  engines: { directory, log },
  damageMet,
  logger
}: Pick<Dependencies, 'damageMet'> & {
  readonly engines: Pick<Engines, 'directory' | 'log'>
  readonly logger: Pick<Logger, 'error' | 'warn'>
}): () => void {
  const stop = new AbortController()
  const read = async () => {
    if (directory === undefined || directory.unclean === undefined) return
    await log.files?.readApart('keys', stop.signal)
    await directory.trustLog()
  }
  read().catch((error: unknown) => {
    if (stop.signal.aborted) return
    if (!(error instanceof LogDamaged)) return logger.warn({ err: error }, 'the keys of the log could not be read')
    logger.error({ err: error }, error.message)
    damageMet.add(`${error.what} (gamenet verify)`)
  })
  return () => stop.abort()
}
