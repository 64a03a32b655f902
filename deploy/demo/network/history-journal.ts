import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Instant, parseJson } from '@gamenet/schemas'
import { z } from 'zod'

/** How far the first-start history has come. Its parts are named by absolute times, so that they mean the same later. */
export const HistoryProgress = z.object({
  seed: z.int(),
  /** Where history ends and live counts begin: the minute of the very first start. */
  until: Instant,
  /** Names of the parts that the log has for good. */
  done: z.array(z.string()),
  finished: z.boolean()
})
export type HistoryProgress = z.infer<typeof HistoryProgress>

/** The only thing that filling history asks of a store: what was saved last is what is loaded, after a crash too. */
export type HistoryJournal = {
  load(): Promise<HistoryProgress | undefined>
  save(progress: HistoryProgress): Promise<void>
}

/** A journal in one file, replaced as a whole: a crash leaves the old text or the new one. */
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
        `${file} does not say how far the demo's history has come (${z.prettifyError(parsed.error)}). ` +
          'Remove it to have the history written again: that changes nothing that is there.'
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
