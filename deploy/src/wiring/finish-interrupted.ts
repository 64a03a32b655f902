import type { Needs } from './service-parts.js'

/** Ends the erasures that an earlier process left undone, in the background. */
export function finishErasures({ operations, logger }: Needs): void {
  operations.finish.erasures().catch((error: unknown) => {
    logger.error({ err: error }, 'an interrupted erasure could not be ended; the next start tries again')
  })
}

/** Ends the import undos that an earlier process left undone, in the background, once all lost rows are back. */
export function finishImportUndos({ operations, lostRows, logger }: Needs): void {
  const finish = async () => ((await lostRows.whenRepaired()) ? await operations.finish.importUndos() : 0)
  finish().catch((error: unknown) => {
    logger.error({ err: error }, 'an interrupted import undo could not be ended; the next start tries again')
  })
}
