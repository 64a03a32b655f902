import { randomUUID } from 'node:crypto'
import { open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkedText, errorCode, parseJson, withChecksum } from '@gamenet/schemas'
import { StoredFile } from './manifest.js'

const DESCRIPTION = /^(\d{4}-\d{2}|newest)\.json$/
/** File systems stamp two changes of a folder within their clock's tick, up to 10 ms, with one instant. */
const STAMP_MS = 100

/** What a dataset's folder contains. */
export type FolderContent = {
  readonly names: ReadonlySet<string>
  /** Readable descriptions by period. */
  readonly files: ReadonlyMap<string, StoredFile>
}

/**
 * The folder of a dataset: `<period>.json` describes the revisions of a file, other names have bytes. Missing until a
 * file is made.
 */
export class DatasetFolder {
  readonly #path: string
  readonly #now: () => number
  #known: { readonly changedNs: bigint; readonly content: FolderContent } | undefined

  constructor(path: string, now = Date.now) {
    this.#path = path
    this.#now = now
  }

  async names(): Promise<readonly string[]> {
    return (await readdir(this.#path).catch(ignoreMissing)) ?? []
  }

  /** Returns the periods that have a description. */
  async periods(): Promise<readonly string[]> {
    return periodsOf(await this.names())
  }

  /** Reads one description; undefined if it is missing or damaged: then the file is made again. */
  async file(period: string): Promise<StoredFile | undefined> {
    const path = this.#pathOf(period)
    // The error of a folder does not name it.
    const named = (error: object) => ignoreMissing(Object.assign(error, { path }))
    const text = await readFile(path, 'utf8').catch(named)
    return StoredFile.safeParse(parseJson(checkedText(text ?? '') ?? '')).data
  }

  /**
   * Returns names and all descriptions, from memory while the folder is unchanged: descriptions are replaced, not
   * rewritten.
   */
  async content(): Promise<FolderContent> {
    const readMs = this.#now()
    const { ctimeNs: changedNs, ctimeMs } = (await stat(this.#path, { bigint: true }).catch(ignoreMissing)) ?? MISSING
    if (this.#known?.changedNs === changedNs) return this.#known.content
    const names = new Set(await this.names())
    const files = new Map<string, StoredFile>()
    for (const period of periodsOf([...names])) {
      const file = await this.file(period)
      if (file !== undefined) files.set(period, file)
    }
    const content = { names, files }
    this.#known = readMs - Number(ctimeMs) > STAMP_MS ? { changedNs, content } : undefined
    return content
  }

  /** Replaces a description: after a crash it is the old or the new one. */
  async describe(period: string, file: StoredFile): Promise<void> {
    const path = this.#pathOf(period)
    const draft = `${path}.${randomUUID()}`
    try {
      await writeFile(draft, withChecksum(JSON.stringify(file)), { flush: true, mode: 0o600 })
      await rename(draft, path)
      await flushFolder(dirname(path))
    } finally {
      await rm(draft, { force: true })
    }
  }

  #pathOf(period: string): string {
    return join(this.#path, `${period}.json`)
  }
}

const MISSING = { ctimeNs: 0n, ctimeMs: 0n }

function periodsOf(names: readonly string[]): readonly string[] {
  return names.flatMap((name) => DESCRIPTION.exec(name)?.[1] ?? [])
}

export const isDescription = (name: string): boolean => DESCRIPTION.test(name)

async function flushFolder(path: string): Promise<void> {
  const folder = await open(path)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

export function ignoreMissing(error: unknown): undefined {
  if (errorCode(error) !== 'ENOENT') throw error
}
