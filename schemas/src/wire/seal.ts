import { createCipheriv, createDecipheriv, createHash, createHmac } from 'node:crypto'

/*
 * person      the subject of events: a number, and a seal key that is stored outside the log
 * sealed      an event's JSON, encrypted with the keys of all its people and bound to its topic and id; unreadable
 *             without any one of the keys
 */

/** The number and the key of one person. */
export type Seal = {
  /** The person's number, from 1. */
  readonly id: number
  /** {@link SEAL_KEY_BYTES} bytes. */
  readonly key: Uint8Array
}

/** The value of a message about people: `{"people":[…],"sealed":"1.…"}`, in exactly this spelling. */
export type SealedValue = {
  readonly people: readonly number[]
  readonly version: number
  readonly sealed: string
}

/** The associated data of a seal: the value cannot be decrypted at another place. */
export type SealedPlace = {
  /** The topic's name. */
  readonly topic: string
  /** The event's id, equal to the message's `ce_id`. */
  readonly id: string
}

export const SEAL_KEY_BYTES = 32

const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16
/** The version byte of newly sealed values. */
const VERSION = 1
/** 15 digits are safe in a number. */
const SEALED_PEOPLE = /^\{"people":\[([1-9]\d{0,14}(?:,[1-9]\d{0,14})?)\],"sealed":"/
const SEALED_VALUE = new RegExp(`${SEALED_PEOPLE.source}([1-9])\\.([\\w-]+)"\\}$`)

/**
 * Encrypts `json` for this place with the keys of all these people, in this order. The initialisation vector is derived
 * from key, place and text, so that the same event published twice has the same bytes. A vector reused with other
 * associated data would reveal the authentication key, so the place is part of it. Two texts of one key share a vector
 * once in 2^48.
 */
export function sealedValue(json: string, place: SealedPlace, seals: readonly Seal[]): string {
  const key = keyOf(seals.map((seal) => seal.key))
  const bound = boundTo(place)
  const iv = createHmac('sha256', key).update(bound).update(json).digest().subarray(0, IV_BYTES)
  const cipher = createCipheriv(CIPHER, key, iv).setAAD(bound)
  const text = cipher.update(json, 'utf8')
  cipher.final()
  const sealed = Buffer.concat([iv, text, cipher.getAuthTag()]).toString('base64url')
  return `{"people":[${seals.map((seal) => seal.id).join(',')}],"sealed":"${VERSION}.${sealed}"}`
}

/** Parses the value of a message about people without decrypting it; undefined for any other value. */
export function readSealedValue(value: string | Uint8Array | null): SealedValue | undefined {
  const text = typeof value === 'string' ? value : value === null ? '' : Buffer.from(value).toString('latin1')
  const [, people, version, sealed] = SEALED_VALUE.exec(text) ?? []
  if (people === undefined || sealed === undefined) return undefined
  return { people: people.split(',').map(Number), version: Number(version), sealed }
}

/** Returns the people of a sealed value, none of another value: a fifth of the work of {@link readSealedValue}. */
export function peopleOfValue(value: string): number[] {
  const [, people = ''] = SEALED_PEOPLE.exec(value) ?? []
  return people === '' ? [] : people.split(',').map(Number)
}

/** Returns whether only a newer program can open this value. */
export const isOfNewerSeal = ({ version }: SealedValue): boolean => version > VERSION

/** Decrypts a value with these keys. Throws when it was sealed with other keys or for another place, or is damaged. */
export function openSealed({ sealed }: SealedValue, place: SealedPlace, keys: readonly Uint8Array[]): string {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length < IV_BYTES + TAG_BYTES) throw new Error(`${bytes.length} bytes are too few to be a sealed event`)
  const key = keyOf(keys)
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(boundTo(place))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  const text = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES))
  decipher.final()
  return text.toString('utf8')
}

/** JSON has no line break, so place and text cannot run into one another. */
const boundTo = ({ topic, id }: SealedPlace): Buffer => Buffer.from(`${VERSION}\n${topic}\n${id}\n`)

function keyOf(keys: readonly Uint8Array[]): Uint8Array {
  const [first] = keys
  for (const key of keys) {
    if (key.length !== SEAL_KEY_BYTES) throw new Error(`a seal key has ${key.length} bytes, expected ${SEAL_KEY_BYTES}`)
  }
  if (first !== undefined && keys.length === 1) return first
  const hash = createHash('sha256')
  for (const key of keys) hash.update(key)
  return hash.digest()
}
