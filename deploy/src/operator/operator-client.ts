import { Readable } from 'node:stream'
import { errorCode } from '@gamenet/schemas'
import { request } from 'undici'
import { z } from 'zod'
import { FailureError, UsageError } from '../config.js'
import { BackupProgress, BackupReport } from './backups.js'
import { deadLetterClient } from './dead-letters-client.js'
import {
  ForgetProgress,
  ForgetReport,
  Forgetting,
  Gaps,
  ImportProgress,
  ImportReport,
  ImportRun,
  type Operations,
  RetractionProgress,
  RetractionReport,
  ScrapeProgress,
  ScrapeReport,
  SettledReport,
  StallStatus,
  Status,
  VerifyProgress,
  VerifyReport
} from './operations.js'
import { rebuildClient } from './rebuild-client.js'

const LINES = 'application/x-ndjson'
const OCTETS = 'application/octet-stream'

/** One line of the answer to an operation that takes long. */
const lineOf = <Progress, Report>(progress: z.ZodType<Progress>, report: z.ZodType<Report>) =>
  z.union([z.object({ progress }), z.object({ report }), z.object({ error: z.string(), usage: z.boolean() })])
const ImportLine = lineOf(ImportProgress, ImportReport)
const RetractionLine = lineOf(RetractionProgress, RetractionReport)
const ForgetLine = lineOf(ForgetProgress, ForgetReport)
const BackupLine = lineOf(BackupProgress, BackupReport)
const VerifyLine = lineOf(VerifyProgress, VerifyReport)
const ScrapeLine = lineOf(ScrapeProgress, z.array(ScrapeReport))

/** The operations of a service that runs elsewhere, over its operator port. */
export function operatorClient(operatorUrl: string): Operations {
  const ask = <Answer>(schema: z.ZodType<Answer>, method: 'GET' | 'POST', path: string, body?: Uint8Array) =>
    askOperator(operatorUrl, schema, method, path, body)
  return {
    status: () => ask(Status, 'GET', '/status'),
    settled: (timeoutMs) => ask(SettledReport, 'GET', `/settled?seconds=${timeoutMs / 1000}`),
    async scrape(source, onProgress) {
      const path = `/scrape/${encodeURIComponent(source)}`
      if (onProgress === undefined) return await ask(z.array(ScrapeReport), 'POST', path)
      return await follow(operatorUrl, path, null, ScrapeLine, onProgress, 'scrape')
    },
    migrate: async () => (await ask(z.object({ applied: z.array(z.string()) }), 'POST', '/migrate')).applied,
    rebuilds: rebuildClient(ask),
    verify: async ({ repair }, onProgress) => {
      if (repair) throw new FailureError('A running service is not repaired: stop it, and ask again.')
      return await follow(operatorUrl, '/verify', null, VerifyLine, onProgress, 'verification')
    },
    imports: () => ask(z.array(ImportRun), 'GET', '/imports'),
    retractImport: (importId, onProgress) =>
      follow(
        operatorUrl,
        `/imports/${encodeURIComponent(importId)}/retract`,
        null,
        RetractionLine,
        onProgress,
        'retraction'
      ),
    gaps: () => ask(Gaps, 'GET', '/gaps'),
    acceptGap: (topic) => ask(z.array(StallStatus), 'POST', `/gaps/${encodeURIComponent(topic)}/accept`),
    deadLetters: deadLetterClient(ask, (path, body, { progress, report }, onProgress) =>
      follow(operatorUrl, path, [body], lineOf(progress, report), onProgress, 'retry')
    ),
    forgettings: () => ask(z.array(Forgetting), 'GET', '/forgettings'),
    forget: (username, { anyway }, onProgress) => {
      const path = `/forget?anyway=${anyway}`
      return follow(operatorUrl, path, [Buffer.from(username)], ForgetLine, onProgress, 'forgetting')
    },
    backup: (directory, onProgress) => {
      const path = `/backup?${new URLSearchParams({ directory })}`
      return follow(operatorUrl, path, null, BackupLine, onProgress, 'backup')
    },
    import: (importRequest, content, onProgress) => {
      const path = `/import?request=${encodeURIComponent(JSON.stringify(importRequest))}`
      return follow(operatorUrl, path, content, ImportLine, onProgress, 'import')
    }
  }
}

/** Posts a body, or none, and follows the lines of the answer to the report. */
async function follow<Progress, Report>(
  operatorUrl: string,
  path: string,
  content: Iterable<Uint8Array> | AsyncIterable<Uint8Array> | null,
  schema: ReturnType<typeof lineOf<Progress, Report>>,
  onProgress: (progress: Progress) => void,
  noun: string
): Promise<Report> {
  const { statusCode, body } = await reach(operatorUrl, () =>
    request(operatorUrl + path, {
      method: 'POST',
      headers: { accept: LINES, ...(content === null ? {} : { 'content-type': OCTETS }) },
      body: content === null ? null : Readable.from(content),
      headersTimeout: 0,
      bodyTimeout: 0
    })
  )
  if (statusCode !== 200) throw refusalOf(statusCode, await body.text())
  let last: { report: Report } | { error: string; usage: boolean } | undefined
  // To the end of the answer, though the report is the last line: nobody would hear of a connection that breaks after it.
  for await (const text of linesOf(body)) {
    const line = schema.parse(JSON.parse(text))
    if ('progress' in line) onProgress(line.progress)
    else last = line
  }
  if (last === undefined)
    throw new FailureError(
      `The service ended the ${noun} without a report; its log has the reason, unless it was killed. Do it again: what is done is not done twice.`
    )
  if ('report' in last) return last.report
  throw last.usage ? new UsageError(last.error) : new FailureError(last.error)
}

/** Whole lines; they end where the connection breaks. */
async function* linesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const bytes of body) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } catch {
    // A service that was killed ends its answers so.
  }
}

async function askOperator<Answer>(
  operatorUrl: string,
  schema: z.ZodType<Answer>,
  method: 'GET' | 'POST',
  path: string,
  sent?: Uint8Array
): Promise<Answer> {
  const { statusCode, text } = await reach(operatorUrl, async () => {
    const answer = await request(operatorUrl + path, {
      method,
      ...(sent === undefined ? {} : { headers: { 'content-type': OCTETS }, body: sent }),
      headersTimeout: 0,
      bodyTimeout: 0
    })
    return { statusCode: answer.statusCode, text: await answer.body.text() }
  })
  if (statusCode !== 200) throw refusalOf(statusCode, text)
  return schema.parse(JSON.parse(text))
}

/** How a connection ends whose other side is gone. */
const CUT_OFF: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

async function reach<Answer>(operatorUrl: string, ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask()
  } catch (error) {
    const code = errorCode(error)
    if (CUT_OFF.has(code)) {
      throw new FailureError(
        `The service at ${operatorUrl} ended before it had answered (${code}): what it was asked may have been done or not. Start it again, and look by gamenet status.`
      )
    }
    throw new FailureError(
      `The service's operator port at ${operatorUrl} cannot be reached (${code}). It may be starting, or have just ended: ask again in a moment, or give another OPERATOR_URL.`
    )
  }
}

function refusalOf(status: number, text: string): Error {
  const parsed = z.object({ error: z.string() }).safeParse(JSON.parse(text))
  const sentence = parsed.success ? parsed.data.error : `The service answered ${status}.`
  return status === 400 ? new UsageError(sentence) : new FailureError(sentence)
}
