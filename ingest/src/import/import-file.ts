import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, constants, open, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Duplex, PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { abortable } from '@gamenet/schemas'
import { importRefused } from './import-refused.js'

/** Large enough that reading dominates the hand-over, small enough for many concurrent imports. */
const BLOCK_BYTES = 262_144
/** Limit for standard input: ten years of a thousand titles by the minute are about 250 GB. */
const SPOOL_BYTES_MAX = 64 * 2 ** 30
const GZIP = [0x1f, 0x8b]
/**
 * Limit of compression. Samples by the minute compress to a twentieth; gzip's maximum, for one repeated byte, is 1,032.
 */
const GZIP_RATIO_MAX = 250
/** Bytes of any gzip before the ratio is checked: the first blocks are not representative. */
const UNPACKED_FREE_BYTES = 64 * 2 ** 20
/** A longer row is not a bad one among others: the content has no rows. The longest valid row has 4 MiB. */
const ROW_BYTES_MAX = 16 * 2 ** 20
const NEWLINE = 0x0a
/** Arrays may have no line ends; each of their rows ends with this. */
const BRACE_CLOSED = 0x7d

/** The format of a file's rows; `object`: one JSON object that contains them. */
export type Format = 'csv' | 'ndjson' | 'json' | 'object'

/** A file that can be read more than once. */
export type ImportFile = {
  /** The file's name in messages, as the user gave it. */
  readonly name: string
  readonly path: string
  readonly bytes: number
  readonly modifiedMs: number
  readonly isGzip: boolean
}

/** Facts about a file from one complete read. */
export type Fingerprint = {
  /** SHA-256 over the unpacked bytes, so that another compression is the same import. */
  readonly digest: Buffer
  readonly format: Format
}

type Reading = { readonly signal: AbortSignal; onBytes?(fileBytesRead: number): void }

/**
 * Runs `use` on a file that can be read several times: the file at a path, or a temporary copy of a stream (standard
 * input, a pipe, a request).
 */
export async function withImportFile<Result>(
  input: string | AsyncIterable<Uint8Array>,
  name: string,
  options: { readonly signal: AbortSignal; readonly spoolDirectory?: string | undefined },
  use: (file: ImportFile) => Promise<Result>
): Promise<Result> {
  if (typeof input === 'string') {
    const found = await describe(input, name)
    if (found !== undefined) return use(found)
  }
  const bytes = typeof input === 'string' ? createReadStream(input) : input
  const path = join(options.spoolDirectory ?? tmpdir(), `gamenet-import-${randomUUID()}`)
  const handle = await open(path, 'wx', 0o600)
  try {
    // The owner of a spool directory empties it at its start; nobody empties the temporary directory.
    const copy = options.spoolDirectory === undefined ? await withoutName(path, handle.fd) : path
    await spool(bytes, copy, name, options.signal)
    const file = await describe(copy, name)
    if (file === undefined) throw new Error(`${copy} does not exist although it was just written`)
    return await use(file)
  } finally {
    await handle.close()
    await rm(path, { force: true })
  }
}

/**
 * Removes the name of an open file, so that a killed process leaves no copy. Returns the path by which this process
 * opens the file; macOS has no other than its name, which stays.
 */
async function withoutName(path: string, fd: number): Promise<string> {
  const unnamed = `/proc/self/fd/${fd}`
  const canOpen = await access(unnamed, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false
  )
  if (!canOpen) return path
  await rm(path)
  return unnamed
}

/** Returns undefined if the path can be read only once. */
async function describe(path: string, name: string): Promise<ImportFile | undefined> {
  try {
    const status = await stat(path)
    if (status.isDirectory()) throw importRefused(`${name} is a directory; name the files in it`)
    if (!status.isFile()) return undefined
    const handle = await open(path)
    try {
      const start = new Uint8Array(2)
      await handle.read(start, 0, 2, 0)
      const isGzip = start[0] === GZIP[0] && start[1] === GZIP[1]
      return { name, path, bytes: status.size, modifiedMs: status.mtimeMs, isGzip }
    } finally {
      await handle.close()
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT') throw importRefused(`There is no file ${name}`, { cause: error })
    if (code === 'EACCES') throw importRefused(`${name} may not be read by this user`, { cause: error })
    throw error
  }
}

async function spool(bytes: AsyncIterable<Uint8Array>, path: string, name: string, signal: AbortSignal): Promise<void> {
  let written = 0
  const limited = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of checkedChunks(chunks, name)) {
      written += chunk.byteLength
      if (written > SPOOL_BYTES_MAX)
        throw importRefused(`${name} has more than ${SPOOL_BYTES_MAX} bytes; import it in parts, as files`)
      yield chunk
    }
  }
  // A pipeline waits for its source, even when it is aborted; `r+` cuts nothing if the descriptor was closed meanwhile.
  await abortable(signal, pipeline(bytes, limited, createWriteStream(path, { flags: 'r+' }), { signal }))
}

/**
 * Passes chunks on while their content is checked, unpacked if it is gzip. Throws `import_refused` as soon as
 * it is not a table: a row without end would fill disk or memory.
 */
export async function* checkedChunks(chunks: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  let packedBytes = 0
  let content: Duplex | undefined
  let reading: Promise<Format> | undefined
  try {
    for await (const chunk of chunks) {
      // No text begins with the first byte of gzip.
      const isGzip = chunk[0] === GZIP[0]
      content ??= isGzip ? createGunzip({ chunkSize: BLOCK_BYTES }) : new PassThrough()
      reading ??= readContent(content, { name, isGzip, packedBytes: () => packedBytes })
      packedBytes += chunk.byteLength
      await Promise.race([reading, content.write(chunk) || once(content, 'drain')])
      yield chunk
    }
    content?.end()
    await reading
  } finally {
    content?.destroy()
  }
}

/** Returns whether the file differs from the described one. */
export async function hasChanged(file: ImportFile): Promise<boolean> {
  const status = await stat(file.path).catch(() => undefined)
  return status === undefined || status.size !== file.bytes || status.mtimeMs !== file.modifiedMs
}

/**
 * Reads the whole file before any of it is published: its hash identifies the import, and content that is not a table
 * is refused early. Throws `import_refused`.
 */
export async function fingerprint(
  file: ImportFile,
  format: Format | undefined,
  reading: Reading
): Promise<Fingerprint> {
  const hash = createHash('sha256')
  let packedBytes = 0
  const onBytes = (read: number): void => {
    packedBytes = read
    reading.onBytes?.(read)
  }
  const found = await readContent(bytesOf(file, { ...reading, onBytes }), {
    ...file,
    format,
    packedBytes: () => packedBytes,
    onBlock: (block) => hash.update(block)
  })
  return { digest: hash.digest(), format: found }
}

type ContentOptions = Pick<ImportFile, 'name' | 'isGzip'> & {
  readonly format?: Format | undefined
  /** Bytes of the file that were read for the blocks so far. */
  packedBytes(): number
  onBlock?(block: Buffer): void
}

/**
 * Reads content to its end, and returns its format. Throws `import_refused` as soon as it is not a table: a
 * first block that is not text, a row without end, truncated, damaged or unlikely gzip.
 */
async function readContent(blocks: AsyncIterable<Buffer>, options: ContentOptions): Promise<Format> {
  const { name, format, isGzip, packedBytes, onBlock } = options
  let [bytes, lines, rowBytes] = [0, 0, 0]
  let start = Buffer.alloc(0)
  let found: Format | undefined
  try {
    for await (const block of blocks) {
      if (start.length < BLOCK_BYTES) start = Buffer.concat([start, block])
      // A file that is not a table is refused after its first block, whatever its size.
      else found ??= format ?? formatOf(start, name)
      onBlock?.(block)
      bytes += block.length
      const end = block.lastIndexOf(found === 'json' || found === 'object' ? BRACE_CLOSED : NEWLINE)
      rowBytes = end === -1 ? rowBytes + block.length : block.length - end
      requireEnd(name, rowBytes)
      if (!isGzip) continue
      requireLikelyRatio(name, bytes, packedBytes())
      for (let at = block.indexOf(NEWLINE); at !== -1; at = block.indexOf(NEWLINE, at + 1)) lines += 1
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (!code.startsWith('Z_')) throw error
    const what = code === 'Z_BUF_ERROR' ? 'ends in the middle of its gzip data' : 'holds damaged gzip data'
    throw importRefused(
      `${name} ${what}, behind ${lines} complete lines (${bytes} bytes unpacked); ` +
        'nothing was published. Get the file again and import it then',
      { cause: error }
    )
  }
  return found ?? format ?? formatOf(start, name)
}

function requireEnd(name: string, rowBytes: number): void {
  if (rowBytes <= ROW_BYTES_MAX) return
  throw importRefused(
    `${name} has a row that does not end within ${ROW_BYTES_MAX} bytes; expected a row per line, or a JSON array of ` +
      `objects. Inspect its content`
  )
}

function requireLikelyRatio(name: string, bytes: number, packedBytes: number): void {
  if (bytes <= UNPACKED_FREE_BYTES || bytes <= GZIP_RATIO_MAX * packedBytes) return
  throw importRefused(
    `${name} is an unlikely gzip file: its first ${packedBytes} bytes unpack to ${bytes}, and at most ` +
      `${GZIP_RATIO_MAX} times as many are accepted. Inspect its content; if it is right, import it unpacked`
  )
}

/** Returns the text of the file in blocks, without a byte order mark. Invalid UTF-8 becomes U+FFFD. */
export async function* textOf(file: ImportFile, reading: Reading): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8')
  for await (const block of bytesOf(file, reading)) yield decoder.decode(block, { stream: true })
  yield decoder.decode()
}

async function* bytesOf(file: ImportFile, { signal, onBytes }: Reading): AsyncGenerator<Buffer> {
  const packed = createReadStream(file.path, { highWaterMark: BLOCK_BYTES, signal })
  const gunzip = file.isGzip ? createGunzip({ chunkSize: BLOCK_BYTES }) : undefined
  if (gunzip !== undefined) {
    packed.on('error', (error) => gunzip.destroy(error))
    packed.pipe(gunzip)
  }
  try {
    for await (const block of gunzip ?? packed) {
      signal.throwIfAborted()
      onBytes?.(packed.bytesRead)
      yield block as Buffer
    }
  } finally {
    gunzip?.destroy()
    packed.destroy()
  }
}

/** First bytes of other file types that users mistake for tables. */
const OTHERS: readonly { readonly bytes: readonly number[]; readonly what: string }[] = [
  { bytes: [0x50, 0x4b, 0x03, 0x04], what: 'a ZIP archive or a spreadsheet; unpack it, or save the sheet as CSV' },
  { bytes: [0x28, 0xb5, 0x2f, 0xfd], what: 'packed with zstd; unpack it, or pack it with gzip' },
  { bytes: [0x42, 0x5a, 0x68], what: 'packed with bzip2; unpack it, or pack it with gzip' },
  { bytes: [0xfd, 0x37, 0x7a, 0x58, 0x5a], what: 'packed with xz; unpack it, or pack it with gzip' },
  { bytes: [0xff, 0xfe], what: 'UTF-16 text; save it as UTF-8' },
  { bytes: [0xfe, 0xff], what: 'UTF-16 text; save it as UTF-8' },
  { bytes: GZIP, what: 'packed with gzip twice; unpack it once' }
]

/**
 * Detects the format by the first characters: `[` begins an array, `{` one object or the first of many, anything else a
 * header.
 */
function formatOf(start: Buffer, name: string): Format {
  const other = OTHERS.find(({ bytes }) => bytes.every((byte, n) => start[n] === byte))
  if (other !== undefined) throw importRefused(`${name} is ${other.what}`)
  if (start.includes(0))
    throw importRefused(`${name} is not text in UTF-8: it contains NUL bytes; expected CSV, NDJSON or JSON`)
  const whole = new TextDecoder('utf-8').decode(start)
  const text = whole.trimStart()
  if (text === '') {
    const what = whole === '' ? 'is empty' : `has only white space in its first ${start.length} bytes`
    throw importRefused(`${name} ${what}; expected rows as CSV with a header, NDJSON or a JSON array`)
  }
  if (text.startsWith('[')) return 'json'
  if (!text.startsWith('{')) {
    if (text.includes('\r') && !text.includes('\n'))
      throw importRefused(`${name} ends its lines with CR alone; save it with LF or CRLF ends`)
    return 'csv'
  }
  // An object in several lines, or a single line with lists or objects in it.
  const [first = '', second = ''] = text.split(/\n\s*/, 2)
  if (second.startsWith('{')) return 'ndjson'
  return second !== '' || /[[{]/.test(first.slice(1)) ? 'object' : 'ndjson'
}
