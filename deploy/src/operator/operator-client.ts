import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { request } from 'undici'
import { z } from 'zod'
import { FailureError, UsageError } from '../config.js'
import {
  ImportProgress,
  ImportReport,
  type Operations,
  ScrapeProgress,
  ScrapeReport,
  SettledReport,
  Status
} from './operations.js'

const lineOf = <Progress extends z.ZodType, Report extends z.ZodType>(progress: Progress, report: Report) =>
  z.union([z.object({ progress }), z.object({ report }), z.object({ error: z.string(), usage: z.boolean() })])
const ImportLine = lineOf(ImportProgress, ImportReport)
const ScrapeLine = lineOf(ScrapeProgress, z.array(ScrapeReport))

/** The operations of a service that runs elsewhere, over its operator port. */
export function operatorClient(operatorUrl: string): Operations {
  const ask = <Answer>(schema: z.ZodType<Answer>, method: 'GET' | 'POST', path: string) =>
    askOperator(operatorUrl, schema, method, path)
  return {
    status: () => ask(Status, 'GET', '/status'),
    settled: (timeoutMs) => ask(SettledReport, 'GET', `/settled?seconds=${timeoutMs / 1000}`),
    async scrape(source, onProgress) {
      const path = `/scrape/${encodeURIComponent(source)}`
      if (onProgress === undefined) return await ask(z.array(ScrapeReport), 'POST', path)
      const { statusCode, body } = await reach(operatorUrl, () =>
        request(operatorUrl + path, {
          method: 'POST',
          headers: { accept: 'application/x-ndjson' },
          headersTimeout: 0,
          bodyTimeout: 0
        })
      )
      if (statusCode !== 200) throw refusalOf(statusCode, await body.text())
      for await (const text of createInterface({ input: body })) {
        const line = ScrapeLine.parse(JSON.parse(text))
        if ('progress' in line) onProgress(line.progress)
        else if ('report' in line) return line.report
        else throw line.usage ? new UsageError(line.error) : new FailureError(line.error)
      }
      throw new FailureError('The service ended before the scrape did; what it had read is published.')
    },
    migrate: async () => (await ask(z.object({ applied: z.array(z.string()) }), 'POST', '/migrate')).applied,
    async import(importRequest, content, onProgress) {
      const address = `${operatorUrl}/import?request=${encodeURIComponent(JSON.stringify(importRequest))}`
      const { statusCode, body } = await reach(operatorUrl, () =>
        request(address, {
          method: 'POST',
          headers: { 'content-type': 'application/octet-stream' },
          body: Readable.from(content),
          headersTimeout: 0,
          bodyTimeout: 0
        })
      )
      if (statusCode !== 200) throw refusalOf(statusCode, await body.text())
      for await (const text of createInterface({ input: body })) {
        const line = ImportLine.parse(JSON.parse(text))
        if ('progress' in line) onProgress(line.progress)
        else if ('report' in line) return line.report
        else throw line.usage ? new UsageError(line.error) : new FailureError(line.error)
      }
      throw new FailureError('The service ended the import without a report; look into its log, then import again.')
    }
  }
}

async function askOperator<Answer>(
  operatorUrl: string,
  schema: z.ZodType<Answer>,
  method: 'GET' | 'POST',
  path: string
): Promise<Answer> {
  const { statusCode, body } = await reach(operatorUrl, () =>
    request(operatorUrl + path, { method, headersTimeout: 0, bodyTimeout: 0 })
  )
  const text = await body.text()
  if (statusCode !== 200) throw refusalOf(statusCode, text)
  return schema.parse(JSON.parse(text))
}

async function reach<Answer>(operatorUrl: string, ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask()
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new FailureError(`The service's operator port at ${operatorUrl} cannot be reached (${code}).`)
  }
}

function refusalOf(status: number, text: string): Error {
  const parsed = z.object({ error: z.string() }).safeParse(JSON.parse(text))
  const sentence = parsed.success ? parsed.data.error : `The service answered ${status}.`
  return status === 400 ? new UsageError(sentence) : new FailureError(sentence)
}
