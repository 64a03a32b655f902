import { digestOf } from '../../request/etag.js'

/** Characters of the digest in an address: 96 bits. */
const DIGEST_CHARACTERS = 16

/** Returns the name under which this service serves a picture of another host. */
export const imageKey = (url: string): string => digestOf(url, DIGEST_CHARACTERS)

/** Returns the address at this service of a picture of another host; undefined where there is none. */
export function imagePath(url: string | null | undefined): string | undefined {
  return url !== undefined && url !== null && /^https?:\/\//i.test(url) ? `/img/${imageKey(url)}` : undefined
}
