import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Instant, parseJson } from '@gamenet/schemas'
import { z } from 'zod'

/**
 * The progress of the first-start history. Its parts are named by absolute times, so that names stay valid.
 */
export const HistoryProgress = z.object({
  seed: z.int(),
  /** Where history ends and live counts begin: the minute of the very first start. */
  until: Instant,
  /** Names of the parts that the log has stored durably. */
  done: z.array(z.string()),
  finished: z.boolean()
})
export type HistoryProgress = z.infer<typeof HistoryProgress>

/** Stores the progress: `load` returns what was saved last, also after a crash. */
export type HistoryJournal = {
  load(): Promise<HistoryProgress | undefined>
  save(progress: HistoryProgress): Promise<void>
}

/** A journal in one file that is replaced atomically: a crash leaves the old text or the new one. */
export function historyJournalFile(file: string): HistoryJournal {
  return {
    load: async () => {
      const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined
        throw error
      })
      if (text === undefined) return undefined
      const parsed = HistoryProgress.safeParse(parseJson(text))
      if (parsed.success) return parsed.data
      throw new Error(
        `${file} has no valid progress of the demo's history (${z.prettifyError(parsed.error)}). ` +
          'Delete it to write the history again: no event is stored twice.'
      )
    },
    save: async (progress) => {
      await mkdir(dirname(file), { recursive: true })
      const next = `${file}.next`
      const handle = await open(next, 'w')
      try {
        await handle.writeFile(JSON.stringify(progress))
        await handle.sync()
      } finally {
        await handle.close()
      }
      await rename(next, file)
    }
  }
}
