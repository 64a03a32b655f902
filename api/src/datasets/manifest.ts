import { ShownInstant } from '@gamenet/schemas'
import { z } from 'zod'

/** The name of a file of bytes: its period, then its digest. */
export const BYTES_FILE = /^(\d{4}-\d{2}|newest)\.\w+\.parquet$/

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/)

/** One state of a file. */
const FileRevision = z
  .object({
    revision: z.int().meta({ description: '0 while the month is open; then counts the states that were published.' }),
    url: z
      .string()
      .meta({ description: 'Names the content; it never changes. 404 once a later revision has replaced it twice.' }),
    rows: z.int(),
    bytes: z.int(),
    first: ShownInstant.nullable().meta({ description: 'The first instant of its rows; null without rows.' }),
    last: ShownInstant.nullable(),
    sha256: Sha256.meta({ description: 'Of the bytes.' }),
    rowsHash: z.string().meta({
      description:
        'Of the rows in any order: sum and exclusive or of cityHash64 over the columns, NULL as `\\N`; hexadecimal.'
    }),
    position: z
      .string()
      .meta({ description: 'Events before it are in the file: `epoch/partition/offset`, blank-separated.' }),
    madeAt: ShownInstant
  })
  .meta({ id: 'DatasetFileRevision' })
export type FileRevision = z.infer<typeof FileRevision>

const DatasetFile = z
  .object({
    period: z.string().meta({ description: 'A month (UTC), `2025-03`, or `newest`.' }),
    url: z.string().meta({ description: 'Its newest revision.' }),
    isClosed: z.boolean().meta({ description: 'Whether the month ended more than a day ago.' }),
    newest: FileRevision.nullable().meta({
      description: 'Null until the file is made: soon after this answer, or when it is requested.'
    }),
    earlier: z
      .array(FileRevision)
      .meta({ description: 'The revision before, if late events or an import undo replaced one.' })
  })
  .meta({ id: 'DatasetFile' })

/** The answer of `getDatasets`. */
export const DatasetList = z
  .object({
    datasets: z.array(
      z
        .object({
          name: z.string(),
          meaning: z.string(),
          columns: z.array(
            z
              .object({
                name: z.string(),
                type: z.string().meta({ description: 'The type in ClickHouse.' }),
                unit: z.string().optional(),
                meaning: z.string()
              })
              .meta({ id: 'DatasetColumn' })
          ),
          files: z.array(DatasetFile).meta({ description: 'Newest first.' })
        })
        .meta({ id: 'Dataset' })
    ),
    excluded: z.string().meta({ description: 'Data that is in no dataset.' })
  })
  .meta({ id: 'DatasetList', description: 'The datasets and their files.' })
export type DatasetList = z.infer<typeof DatasetList>

/** What is stored of a file. */
export const StoredFile = z.object({
  /** The data version that the newest revision was last found to have. */
  version: z.number(),
  checkedMs: z.number(),
  /**
   * Newest first. `file` is the name in the folder, which is served and removed: no changed description names
   * another.
   */
  revisions: z.array(FileRevision.omit({ url: true }).extend({ file: z.string().regex(BYTES_FILE) }))
})
export type StoredFile = z.infer<typeof StoredFile>
export type StoredRevision = StoredFile['revisions'][number]
