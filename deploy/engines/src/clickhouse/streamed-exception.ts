/*
 * Once the first bytes of an answer are out, its status is 200 whatever happens. ClickHouse then ends the body with
 * the exception, and usually breaks the connection off. Since 25.11, where <tag> is the header X-ClickHouse-Exception-Tag:
 *
 *   \r\n__exception__\r\n<tag>\r\n<message>\n<length of message> <tag>\r\n__exception__\r\n
 *
 * Before, `__exception__\r\n<message>` or the bare message `Code: 395. DB::Exception: …`.
 */

/** At most so many bytes at the end of a body are an exception, as the server's documentation says. */
const EXCEPTION_LENGTH_MAX = 16 * 1024

/** The message of the exception at the end of a body, or undefined when the body is an answer. */
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

/** A row cannot look like this: strings in JSON hold no raw line break, and an array ends with its bracket. */
const untagged = (tail: string): string | undefined =>
  /(?:^|\n)(?:__exception__\r?\n)?(Code: \d+\. DB::Exception: [^\n]*)\s*(?:__exception__\s*)?$/.exec(tail)?.[1]
