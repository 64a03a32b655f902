import { errorMessage } from '../values/error-message.js'
import type { LogMessage, LogRecord } from './log-record.js'
import { isOfNewerSeal, openSealed, readSealedValue, type Seal, sealedValue } from './seal.js'
import type { Topic } from './topic.js'

/*
 * Events travel as CloudEvents 1.0 in Kafka's binary mode: attributes in `ce_` headers, JSON as value.
 * https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md
 */

const TYPE_PREFIX = 'gamenet.'

/** The origin of an event: a scraped source or an import. */
export type Provenance = {
  /** CloudEvents `source`, a URI reference such as `/scrape/network` or `/import/1f3a…`. */
  readonly source: string
  /** Set on imported events, so that an import can be listed and undone. */
  readonly importId?: string
}

/**
 * Encodes an event. Its id consists of topic, identity and instant: with the source, which CloudEvents combines with
 * the id, the same observation published twice has the same identity. An event about people is sealed with their
 * `seals`, in the order of the topic's `people`.
 */
export function encodeEvent<Event>(
  topic: Topic<Event>,
  event: Event,
  provenance: Provenance,
  seals: readonly Seal[] = []
): LogMessage {
  const instant = topic.instant(event)
  const headers: Record<string, string> = { ...templateOf(topic, provenance) }
  headers.ce_time = instant
  if (topic.people === undefined) {
    headers.ce_id = `${topic.name}/${topic.identity(event)}@${instant}`
    return { key: topic.key(event), headers, value: JSON.stringify(event) }
  }
  const [first] = seals
  const people = topic.people(event).length
  if (first === undefined || seals.length !== people)
    throw new Error(`an event of ${topic.name} is about ${people} people and got the seals of ${seals.length}`)
  const id = `${topic.name}/${seals.map((seal) => seal.id).join('/')}/${topic.identity(event)}@${instant}`
  headers.ce_id = id
  return { key: String(first.id), headers, value: sealedValue(JSON.stringify(event), { topic: topic.name, id }, seals) }
}

type Headers = Readonly<Record<string, string>>

/**
 * Cache by origin and topic. Copying headers costs a sixth of building them, and one origin has thousands of events.
 */
const templates = new WeakMap<Provenance, Map<string, Headers>>()

/**
 * Returns the common headers of all events of one topic and origin, with empty ones for those that differ per event.
 */
function templateOf(topic: Pick<Topic, 'name' | 'version'>, provenance: Provenance): Headers {
  const byTopic = templates.get(provenance) ?? new Map<string, Headers>()
  const found = byTopic.get(topic.name)
  if (found !== undefined) return found
  const headers: Record<string, string> = {
    ce_specversion: '1.0',
    ce_type: typeOf(topic),
    ce_source: provenance.source,
    ce_id: '',
    ce_time: '',
    'content-type': 'application/json'
  }
  if (provenance.importId !== undefined) headers.ce_importid = provenance.importId
  templates.set(provenance, byTopic.set(topic.name, headers))
  return headers
}

/** A decoded event, or the reason why it is unreadable. */
export type Decoded<Event> =
  | { readonly ok: true; readonly event: Event; readonly source: string; readonly importId: string }
  | { readonly ok: false; readonly reason: string; readonly isErased?: true }

/** Returns the seal key of a person; undefined if it was deleted. */
export type SealKeyOf = (person: number) => Uint8Array | undefined

/**
 * Decodes one record of a topic: attributes, seal, JSON, version, schema. Never throws; a fault is the reason of a dead
 * letter. An event whose person's key was deleted was erased and counts as no event.
 */
export function decodeEvent<Event>(topic: Topic<Event>, record: LogRecord, sealKeyOf?: SealKeyOf): Decoded<Event> {
  if (record.fault !== undefined) return refused(record.fault)
  // A dead letter stores an empty value for a missing one.
  if (record.value === null || record.value.length === 0) return refused('the message has no value')
  const unknownType = faultOfType(topic, record.headers.ce_type)
  if (unknownType !== undefined) return refused(unknownType)
  const opened =
    topic.people === undefined ? { ok: true as const, value: record.value } : openedValue(topic, record, sealKeyOf)
  if (!opened.ok) return opened
  let value: unknown
  try {
    value = JSON.parse(typeof opened.value === 'string' ? opened.value : utf8.decode(opened.value))
  } catch (error) {
    return refused(`the message is not JSON: ${errorMessage(error)}`)
  }
  const parsed = topic.event.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    return refused(`${issue?.path.join('.') || 'the event'}: ${issue?.message ?? 'does not match its schema'}`)
  }
  return {
    ok: true,
    event: parsed.data,
    source: record.headers.ce_source ?? '',
    importId: record.headers.ce_importid ?? ''
  }
}

type Opened = { readonly ok: true; readonly value: string } | (Decoded<never> & { readonly ok: false })

/** Returns the JSON of an event about people. */
function openedValue(topic: Pick<Topic, 'name'>, record: LogRecord, sealKeyOf: SealKeyOf | undefined): Opened {
  const value = readSealedValue(record.value)
  if (value === undefined) return refused('the message is not sealed, as events about people are')
  if (isOfNewerSeal(value)) return refused(`the message is sealed in version ${value.version}, newer than this program`)
  const keys: Uint8Array[] = []
  for (const person of value.people) {
    const key = sealKeyOf?.(person)
    if (key === undefined) return { ok: false, reason: `person ${person} was erased`, isErased: true }
    keys.push(key)
  }
  try {
    return { ok: true, value: openSealed(value, { topic: topic.name, id: record.headers.ce_id ?? '' }, keys) }
  } catch {
    return refused('the message cannot be decrypted with the keys of its people for this topic and id')
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

const refused = (reason: string): { ok: false; reason: string } => ({ ok: false, reason })

/** Returns the `ce_type` of newly written events. */
function typeOf(topic: Pick<Topic, 'name' | 'version'>): string {
  const known = types.get(topic)
  if (known !== undefined) return known
  const type = `${TYPE_PREFIX}${topic.name}.v${topic.version}`
  types.set(topic, type)
  return type
}

const types = new WeakMap<Pick<Topic, 'name' | 'version'>, string>()

function faultOfType(topic: Pick<Topic, 'name' | 'version'>, type: string | undefined): string | undefined {
  if (type === undefined) return 'the header ce_type is missing'
  if (type === typeOf(topic)) return undefined
  const match = /^gamenet\.([a-z-]+)\.v([1-9]\d{0,3})$/.exec(type)
  if (match === null || match[1] !== topic.name) {
    const newest = topic.version === 1 ? '' : ` to .v${topic.version}`
    return `ce_type is ${JSON.stringify(type)}, expected ${TYPE_PREFIX}${topic.name}.v1${newest}`
  }
  const version = Number(match[2])
  if (version > topic.version)
    return `schema version ${version} of ${topic.name} is newer than this program, which reads up to ${topic.version}`
  return undefined
}
