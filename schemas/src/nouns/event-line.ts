import { z } from 'zod'
import { parseJson } from '../values/parse-json.js'
import type { LogMessage, LogRecord } from '../wire/log-record.js'
import { topics } from './topics.js'

/*
 * A line of an exported log: a CloudEvent 1.0 in JSON format, its data as the log has it, so a sealed event stays
 * sealed. https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
 */

const HEADER = 'ce_'
const CONTENT_TYPE = 'application/json'
/**
 * When a log first took the event, in the extension attribute of CloudEvents for it. It is written by the export of a
 * log, and outlives the import into another.
 */
const RECORDED = 'recordedtime'

/** Returns when a log first took the event, in milliseconds since 1970; undefined if that is unknown. */
export function recordedAtMs({
  headers,
  recordedAtMs
}: Pick<LogRecord, 'headers' | 'recordedAtMs'>): number | undefined {
  const moved = headers[HEADER + RECORDED]
  const ms = moved === undefined ? Number.NaN : Date.parse(moved)
  return ms >= 0 ? ms : recordedAtMs
}

/** Returns the line of a record; undefined if the record is not a CloudEvent with JSON. */
export function eventLine(record: LogRecord): string | undefined {
  const { key, headers, value, fault } = record
  const ms = recordedAtMs(record)
  const attributes = Object.fromEntries(
    Object.entries(headers).flatMap(([name, text]) =>
      name.startsWith(HEADER) ? [[name.slice(HEADER.length), text]] : []
    )
  )
  if (fault !== undefined || value === null || !Required.safeParse(attributes).success) return undefined
  const data = typeof value === 'string' ? value : Buffer.from(value).toString()
  if (parseJson(data) === undefined) return undefined
  const recorded = ms === undefined ? {} : { [RECORDED]: new Date(ms).toISOString() }
  const shown = { ...attributes, ...recorded, partitionkey: key ?? '', datacontenttype: CONTENT_TYPE }
  // The text of the data is kept, not parsed: a seal is bound to it.
  return `${JSON.stringify(shown).slice(0, -1)},"data":${data.replaceAll('\n', ' ')}}`
}

/** Returns the message of a line and its topic. Throws a sentence if it is not a line of an exported log. */
export function messageOfLine(line: string): { readonly topic: string; readonly message: LogMessage } {
  const parsed = Line.safeParse(parseJson(line))
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new Error(`no CloudEvent of an exported log: ${issue?.path.join('.') || 'the line'}: ${issue?.message}`)
  }
  const { data, datacontenttype: _, partitionkey: key, ...attributes } = parsed.data
  const [, topic] = TYPE.exec(attributes.type) ?? []
  if (topic === undefined || !topics.some(({ name }) => name === topic))
    throw new Error(
      `the type is ${JSON.stringify(attributes.type)}, expected gamenet.<topic>.v<version> of a known topic`
    )
  const headers = Object.fromEntries(Object.entries(attributes).map(([name, text]) => [`${HEADER}${name}`, text]))
  return { topic, message: { key, headers: { ...headers, 'content-type': CONTENT_TYPE }, value: JSON.stringify(data) } }
}

const TYPE = /^gamenet\.([a-z-]+)\.v\d+$/
const Text = z.string().min(1)
const Required = z.looseObject({ specversion: z.literal('1.0'), type: Text, source: Text, id: Text, time: Text })
const Line = z
  .object({
    ...Required.shape,
    datacontenttype: z.literal(CONTENT_TYPE),
    partitionkey: z.string(),
    data: z.record(z.string(), z.unknown())
  })
  .catchall(z.string())
