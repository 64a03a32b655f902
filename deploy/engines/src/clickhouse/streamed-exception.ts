/*
 * After the first bytes of an answer its status is 200, whatever follows. ClickHouse then ends the body with the
 * exception, and usually closes the connection. Since 25.11, where <tag> is the header X-ClickHouse-Exception-Tag:
 *
 *   \r\n__exception__\r\n<tag>\r\n<message>\n<length of message> <tag>\r\n__exception__\r\n
 *
 * Before, `__exception__\r\n<message>` or the bare message `Code: 395. DB::Exception: …`.
 */

/** Maximum size of an exception at the end of a body, according to the server's documentation. */
export const EXCEPTION_LENGTH_MAX = 16 * 1024

/** Returns the message of the exception at the end of a body, or undefined if the body is an answer. */
export const streamedException = (body: Uint8Array, tag: string | undefined): string | undefined => {
  const tail = Buffer.from(body.buffer, body.byteOffset, body.byteLength).subarray(-EXCEPTION_LENGTH_MAX).toString()
  return tag === undefined ? untagged(tail) : tagged(tail, tag)
}

const tagged = (tail: string, tag: string): string | undefined => {
  const opening = `__exception__\r\n${tag}\r\n`
  const start = tail.lastIndexOf(opening)
  if (start < 0) return undefined
  return tail
    .slice(start + opening.length)
    .replace(CLOSING, '')
    .trim()
}

/** `<length> <tag>` and the closing mark, complete or truncated. */
const CLOSING = /\n\d+(?: \w*(?:\r?\n?\w*\r?\n?)?)?$/

/** Rows cannot match this: strings in JSON contain no raw line break, and an array ends with its bracket. */
const untagged = (tail: string): string | undefined =>
  /(?:^|\n)(?:__exception__\r?\n)?(Code: \d+\. DB::Exception: [^\n]*)\s*(?:__exception__\s*)?$/.exec(tail)?.[1]
