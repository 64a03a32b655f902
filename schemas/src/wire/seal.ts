import { createCipheriv, createDecipheriv, createHash, createHmac } from 'node:crypto'

/*
 * person      one whom events are about: a number, and a seal key that is kept outside the log
 * sealed      an event's JSON, encrypted with the keys of all its people; with one of the keys gone it is gone
 */

/** How one person's events are sealed. */
export type Seal = {
  /** The person's number, from 1. */
  readonly id: number
  /** {@link SEAL_KEY_BYTES} bytes. */
  readonly key: Uint8Array
}

/** The value of a message about people: `{"people":[…],"sealed":"…"}`, in this spelling alone. */
export type SealedValue = { readonly people: readonly number[]; readonly sealed: string }

export const SEAL_KEY_BYTES = 32

const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16
/** 15 digits are safe in a number. */
const SEALED_VALUE = /^\{"people":\[([1-9]\d{0,14}(?:,[1-9]\d{0,14})?)\],"sealed":"([\w-]+)"\}$/

/**
 * The value of a message that holds `json` for those who have the keys of all these people, in this order.
 * The initialisation vector is made of key and text, so that the same event published twice is the same bytes; two
 * texts of one key share a vector once in 2^48.
 */
export function sealedValue(json: string, seals: readonly Seal[]): string {
  const key = keyOf(seals.map((seal) => seal.key))
  const iv = createHmac('sha256', key).update(json).digest().subarray(0, IV_BYTES)
  const cipher = createCipheriv(CIPHER, key, iv)
  const text = cipher.update(json, 'utf8')
  cipher.final()
  const sealed = Buffer.concat([iv, text, cipher.getAuthTag()]).toString('base64url')
  return `{"people":[${seals.map((seal) => seal.id).join(',')}],"sealed":"${sealed}"}`
}

/** Reads the value of a message about people without opening it; undefined when it is no such value. */
export function readSealedValue(value: string | Uint8Array | null): SealedValue | undefined {
  const text = typeof value === 'string' ? value : value === null ? '' : Buffer.from(value).toString('latin1')
  const [, people, sealed] = SEALED_VALUE.exec(text) ?? []
  if (people === undefined || sealed === undefined) return undefined
  return { people: people.split(',').map(Number), sealed }
}

/** The text that was sealed with these keys. Throws when it was sealed with others, or is not whole. */
export function openSealed(sealed: string, keys: readonly Uint8Array[]): string {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length < IV_BYTES + TAG_BYTES) throw new Error(`${bytes.length} bytes are too few to be a sealed event`)
  const key = keyOf(keys)
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  const text = decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES))
  decipher.final()
  return text.toString('utf8')
}

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
