import { readdir, readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { digestOf, namedTag } from '../request/etag.js'
import { once } from './asset.js'
import { sdkPath } from './guides.js'

/** The built package of the client, and its version. */
export type SdkPackage = { readonly folder: URL; readonly version: string }

/**
 * Serves the client as npm packs it, made for the first request. The same files give the same bytes, as lock files
 * require.
 */
export async function addSdkPackage(app: FastifyInstance, { folder, version }: SdkPackage): Promise<void> {
  const made = once(async () => gzipSync(tarOf(await filesOf(folder)), { level: 9 }))
  app.get(sdkPath(version), async (request, reply) => {
    const bytes = await made()
    const identity = digestOf(bytes)
    void reply.headers({ ETag: `"${identity}"`, 'Cache-Control': 'no-cache', 'Access-Control-Allow-Origin': '*' })
    if (namedTag(request.headers['if-none-match'], identity) !== undefined) return reply.code(304).send()
    return reply.type('application/gzip').send(bytes)
  })
}

type PackedFile = { readonly path: string; readonly content: Buffer }

/** Returns what `files` of the SDK's package.json names, and what npm always packs. */
async function filesOf(folder: URL): Promise<PackedFile[]> {
  const compiled = ['dist/cjs', 'dist/src'].map(async (path) =>
    (await readdir(new URL(path, folder)))
      .filter((name) => /\.(?:js|d\.ts)$/.test(name))
      .map((name) => `${path}/${name}`)
  )
  const paths = ['package.json', 'LICENSE', 'README.md', ...(await Promise.all(compiled)).flat().sort()]
  return await Promise.all([
    ...paths.map(async (path) => ({ path, content: await readFile(new URL(path, folder)) })),
    { path: 'dist/cjs/package.json', content: Buffer.from('{ "type": "commonjs" }') }
  ])
}

const BLOCK = 512

/** Returns an archive in POSIX ustar: each file is a head of 512 bytes and its content, padded to blocks. */
function tarOf(files: readonly PackedFile[]): Buffer {
  const blocks = files.flatMap(({ path, content }) => {
    const head = Buffer.alloc(BLOCK)
    const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0')
    // Name, mode, owner, group, size, time, checksum (blanks while it is summed), type, magic; the names are short
    // ASCII.
    head.write(`package/${path}`)
    const numbers = [octal(0o644, 7), octal(0, 7), octal(0, 7), octal(content.length, 11), octal(0, 11)]
    head.write(numbers.join('\0'), 100)
    head.write('        0', 148)
    head.write('ustar\x0000', 257)
    const sum = head.reduce((total, byte) => total + byte)
    head.write(`${octal(sum, 6)}\0 `, 148)
    return [head, content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]
  })
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}
