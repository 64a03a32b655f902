import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { errorMessage, isFailure, type LogMessage, messageOfLine, topics } from '@gamenet/schemas'
import { z } from 'zod'
import { UsageError } from '../../config.js'
import { type OperationNeeds, operation, type RunContext } from '../operation.js'

const BATCH_EVENTS = 5000
const FAULTS_MAX = 20
const PEOPLE_TOPICS = new Set(topics.filter(({ people }) => people !== undefined).map(({ name }) => name))

const ImportLogProgress = z.object({ events: z.int() })
export type ImportLogProgress = z.infer<typeof ImportLogProgress>

const ImportLogReport = z.object({
  events: z.int(),
  rejected: z.int(),
  faults: z.array(z.object({ line: z.int(), reason: z.string() }))
})

/**
 * Appends the events of an exported log. Events keep their ids, so a repeated import leaves the read tables as they
 * are.
 */
export const importLog = operation({
  name: 'import of a log',
  route: 'POST /log/import',
  input: z.strictObject({ content: z.custom<AsyncIterable<Uint8Array>>() }),
  body: { as: 'stream', field: 'content' },
  progress: ImportLogProgress,
  result: ImportLogReport,
  needsLog: true,
  run: (...given) =>
    appendLines(...given).catch((error: unknown) => {
      throw isFailure(error, 'import_refused') ? new UsageError(error.message) : error
    })
})

async function appendLines(
  { engines: { log, disk, writes }, stopping }: OperationNeeds,
  { content }: { readonly content: AsyncIterable<Uint8Array> },
  { onProgress, signal }: RunContext<ImportLogProgress>
): Promise<z.infer<typeof ImportLogReport>> {
  const report: z.infer<typeof ImportLogReport> = { events: 0, rejected: 0, faults: [] }
  const either = AbortSignal.any([stopping, signal])
  let waiting: { topic: string; messages: LogMessage[] } = { topic: '', messages: [] }
  let areNumbersAbove = false
  const append = async (): Promise<void> => {
    const { topic, messages } = waiting
    if (messages.length === 0) return
    either.throwIfAborted()
    await disk.requireSpace(0, 'The import of a log')
    // The numbers of this log are below the clock of its writer.
    if (PEOPLE_TOPICS.has(topic) && !areNumbersAbove) {
      const { continueNumbers } = await import('../../stores/older-writes.js')
      await continueNumbers(await writes())
    }
    areNumbersAbove ||= PEOPLE_TOPICS.has(topic)
    await log.append(topic, messages)
    report.events += messages.length
    onProgress({ events: report.events })
  }
  const { checkedChunks } = await import('@gamenet/ingest')
  const input = Readable.from(checkedChunks(content, 'The log'))
  let number = 0
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    number += 1
    const parsed = line.trim() === '' ? undefined : parsedLine(line)
    if (parsed === undefined) continue
    if (typeof parsed === 'string') {
      report.rejected += 1
      if (report.faults.length < FAULTS_MAX) report.faults.push({ line: number, reason: parsed })
      continue
    }
    if (parsed.topic !== waiting.topic || waiting.messages.length >= BATCH_EVENTS) {
      await append()
      waiting = { topic: parsed.topic, messages: [] }
    }
    waiting.messages.push(parsed.message)
  }
  await append()
  return report
}

/** Returns the message of a line, or why it is none. */
function parsedLine(line: string): ReturnType<typeof messageOfLine> | string {
  try {
    return messageOfLine(line)
  } catch (error) {
    return errorMessage(error)
  }
}
