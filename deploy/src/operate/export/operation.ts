import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rename, rm, stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { errorCode, eventLine, type LogBatch, topics } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError, UsageError } from '../../config.js'
import { isInside } from '../../data-directory/data-directory.js'
import { readStored } from '../../stores/read-stored.js'
import { requireTopic } from '../gap/operation.js'
import { type OperationNeeds, operation, type RunContext } from '../operation.js'

const ExportProgress = z.object({ topic: z.string(), events: z.int(), eventsTotal: z.int() })
export type ExportProgress = z.infer<typeof ExportProgress>

const ExportReport = z.object({
  file: z.string(),
  events: z.int(),
  /** Messages that are not CloudEvents. */
  leftOut: z.int()
})
export type ExportReport = z.infer<typeof ExportReport>

const Input = z.strictObject({
  /** Absolute; `.gz` compresses. */
  file: z.string().min(1),
  /** Comma-separated; absent: all. */
  topics: z.string().exactOptional(),
  /** The first instant of events. */
  from: z.iso.datetime().exactOptional()
})

/** Writes the events that the log has at the call to a file on the machine of the process. */
export const exportLog = operation({
  name: 'export of the log',
  route: 'POST /log/export',
  input: Input,
  inputRule: 'The query takes file (an absolute path), topics (comma-separated) and from (an instant)',
  progress: ExportProgress,
  result: ExportReport,
  needsLog: true,
  run: writeLog
})

async function writeLog(
  { engines, stopping }: OperationNeeds,
  { file, topics: chosen, from }: z.infer<typeof Input>,
  { onProgress, signal }: RunContext<ExportProgress>
): Promise<ExportReport> {
  await refuseTarget(file, engines.directory?.path)
  const names = chosen === undefined ? topics.map(({ name }) => name) : chosen.split(',')
  for (const name of names) requireTopic(name)
  await engines.disk.requireSpace(0, 'The export')
  const draft = `${file}.${randomUUID()}`
  const target = createWriteStream(draft, { mode: 0o600, flush: true })
  const out: Writable = file.endsWith('.gz') ? createGzip() : target
  if (out !== target) out.pipe(target)
  // A failure rejects the next write; the file is removed.
  const written = finished(target)
  written.catch(() => undefined)
  const total = { events: 0, leftOut: 0 }
  const fromMs = from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from)
  try {
    const ended = AbortSignal.any([stopping, signal])
    for (const topic of names) {
      const take = async ({ records }: LogBatch, eventsTotal: number) => {
        const lines = records.flatMap((record) => {
          if (Date.parse(record.headers.ce_time ?? '') < fromMs) return []
          const line = eventLine(record)
          total[line === undefined ? 'leftOut' : 'events'] += 1
          return line === undefined ? [] : [`${line}\n`]
        })
        onProgress({ topic, events: total.events, eventsTotal })
        if (target.errored) throw target.errored
        if (!out.write(lines.join(''))) await Promise.race([once(out, 'drain'), written])
      }
      await readStored(engines, { topics: [topic], signal: ended, take })
    }
    out.end()
    await written
    await rename(draft, file)
    return { file, ...total }
  } catch (error) {
    target.destroy()
    if (/^(ENOSPC|EDQUOT)$/.test(errorCode(error)))
      throw new FailureError(`The disk of ${file} is full; free some space, or give another file.`)
    if (/^(ENOENT|EACCES|ENOTDIR|EISDIR)$/.test(errorCode(error)))
      throw new FailureError(
        `${file} cannot be written (${errorCode(error)}); give a file in a folder that the service may write.`
      )
    throw error
  } finally {
    await rm(draft, { force: true })
  }
}

/** The finished file replaces the one of its name: never a file of the engines, nor a device. */
async function refuseTarget(file: string, dataDirectory: string | undefined): Promise<void> {
  if (!isAbsolute(file)) throw new UsageError(`The file must be an absolute path; got ${file}.`)
  if (dataDirectory !== undefined && (await isInside(file, dataDirectory)))
    throw new UsageError(`${file} is in the data directory ${dataDirectory}; give a file outside it.`)
  const found = await stat(file).catch(() => undefined)
  if (found !== undefined && !found.isFile() && !found.isDirectory())
    throw new UsageError(`${file} is a device or a pipe, which the export would replace; give a file.`)
}
