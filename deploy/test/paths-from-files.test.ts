import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, readlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import fc from 'fast-check'
import { test } from 'tap'
import { copyHere } from '../src/operate/backup/copy-here.js'
import { restore } from '../src/operate/restore/restore.js'
import { readLedgerFile } from '../src/stores/ledger-file.js'

type Entry =
  | { readonly path: string; readonly link: string }
  | { readonly path: string; readonly isFolder: true }
  | { readonly path: string; readonly bytes: number; readonly sha256: string }

const CONTENT = 'changed'
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const file = (path: string): Entry => ({ path, bytes: CONTENT.length, sha256: sha256(CONTENT) })
const signal = new AbortController().signal

test('a changed backup writes nothing outside the data directory', async (t) => {
  const outside = t.testdir({ outside: { victim: {} } })
  const victim = join(outside, 'outside', 'victim')
  const hostile: Readonly<Record<string, readonly Entry[]>> = {
    'a file below a link to anywhere': [{ path: 'writes', link: victim }, file('writes/planted')],
    'a link to anywhere': [{ path: 'datasets', link: victim }],
    'a file below a link that stays inside': [
      { path: 'a', link: 'b' },
      { path: 'b', isFolder: true },
      file('a/planted')
    ],
    'a link that leaves by names': [{ path: 'log/a', link: '../../outside/victim' }],
    'links that lead out together': [
      { path: 's', isFolder: true },
      { path: 'p/q/a', link: '../../s' },
      { path: 'p/q/b', link: 'a/../../outside' }
    ],
    'a link over a folder': [file('a/b'), { path: 'a', link: 's' }],
    'a folder at a link': [
      { path: 'a', link: 's' },
      { path: 'a', isFolder: true }
    ],
    'a file over a link': [{ path: 'a', link: 's' }, file('a')],
    'a link without end': [{ path: 'a/b/c', link: '../../a' }],
    'a path that leaves': [file('../outside/victim/planted')],
    'an absolute path': [file(join(victim, 'planted'))],
    'a file of the restore itself': [file('restoring.json')]
  }
  for (const [name, entries] of Object.entries(hostile)) {
    const backup = join(outside, 'backups', name)
    const data = join(outside, 'restored', name)
    await writeBackup(backup, entries)
    const refused = await tryRestore(backup, data)
    t.match(refused, /^The backup .* is damaged: .* Nothing was restored/s, name)
    t.same(await readdir(victim), [], name)
    t.same(await readdir(join(outside, 'restored')), [], 'what the restore made is removed')
  }
})

test('links and folders that a backup has are restored as they were', async (t) => {
  const dir = t.testdir({ from: { tables: { store: { abc: 'x' }, metadata: {} } }, to: {} })
  const link = join('tables', 'metadata', 'default')
  await symlink('../store', join(dir, 'from', link))
  const { list, copied } = await copyInAndOut(dir)
  t.equal(copied.differs, null)
  t.match(list, `{"path":"${link}","link":"../store"}\n`)
  t.equal(readlinkSync(join(dir, 'to', link)), '../store')
  t.equal(await readFile(join(dir, 'to', link, 'abc'), 'utf8'), 'x')
})

test('a part that lies on another disk is copied; a link further in that leads out prevents the backup', async (t) => {
  const dir = t.testdir({ disk: { f: 'x' }, from: {}, to: {} })
  await symlink(join(dir, 'disk'), join(dir, 'from', 'tables'))
  const { copied } = await copyInAndOut(dir)
  t.equal(copied.differs, null)
  t.equal(await readFile(join(dir, 'to', 'tables', 'f'), 'utf8'), 'x')
  await symlink('/etc', join(dir, 'disk', 'out'))
  t.match(copyTrees(dir, 'again'), { differs: /tables\/out|disk\/out is a link to \/etc/ })
})

test('a pipe in a backup does not count as a file', async (t) => {
  const dir = t.testdir({ data: {}, to: {} })
  execFileSync('mkfifo', [join(dir, 'data', 'pipe')])
  await writeFile(join(dir, 'list'), JSON.stringify(file('pipe')))
  const copied = copyListed(dir)
  t.match(copied.differs, /pipe is not a file/)
})

test('a restore copies no device, and no file that is longer than the list says', async (t) => {
  const dir = t.testdir({ data: { long: '' }, to: {} })
  truncateSync(join(dir, 'data', 'long'), 8_000_000)
  await symlink('/dev', join(dir, 'data', 'devices'))
  for (const [entry, reason] of [
    [file('long'), /long has 8000000 bytes instead of the 7/],
    [{ path: 'devices/null', bytes: 0, sha256: sha256('') }, /devices\/null is not a file/],
    [{ path: 'x'.repeat(300), isFolder: true }, /x{300} is too long/],
    [{ path: 'a/'.repeat(60_000).slice(0, -1), isFolder: true }, /names no place in it/]
  ] as const) {
    await writeFile(join(dir, 'list'), JSON.stringify(entry))
    t.match(copyListed(dir).differs, reason)
  }
  t.same(await readdir(join(dir, 'to')), ['devices'], 'nothing was copied')
})

test('no list of files writes outside the folder', async (t) => {
  const name = fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom('a', 'b', 'c', 'd') },
    { weight: 1, arbitrary: fc.constantFrom('..', '.', '', 'ä ', 'a\0b', '...') }
  )
  const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('/'))
  const anyEntry = fc.oneof(
    { weight: 4, arbitrary: path.map(file) },
    { weight: 1, arbitrary: path.map((each): Entry => ({ path: each, isFolder: true })) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(
          path,
          fc.oneof(
            path,
            path.map((each) => `/${each}`),
            fc.constantFrom('OUTSIDE', '../outside', 'a/../..')
          )
        )
        .map(([each, link]): Entry => ({ path: each, link }))
    }
  )
  let written = 0
  let complete = 0
  fc.assert(
    fc.property(fc.array(anyEntry, { minLength: 1, maxLength: 6 }), (entries) => {
      const dir = join(t.testdirName, String(written))
      mkdirSync(join(dir, 'outside', 'a'), { recursive: true })
      for (const folder of ['data', 'to']) mkdirSync(join(dir, folder))
      const resolved = entries.map((entry) =>
        'link' in entry && entry.link === 'OUTSIDE' ? { ...entry, link: join(dir, 'outside') } : entry
      )
      for (const entry of resolved) if ('bytes' in entry) plant(dir, entry.path)
      writeFileSync(join(dir, 'list'), resolved.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
      const before = contentOf(dir)
      if (isComplete(dir)) complete += 1
      written += 1
      t.strictSame(contentOf(dir), before, JSON.stringify(resolved))
    }),
    { numRuns: 300, seed: 20_261_128 }
  )
  t.ok(complete > 20, `${complete} lists were copied as a whole`)
})

test('files of a data directory name no file elsewhere', async (t) => {
  const ledger = (saltMark: string) =>
    JSON.stringify({ format: 1, sha256: sha256(JSON.stringify([saltMark, []])), saltMark, entries: [] })
  const dir = t.testdir({ 'own.json': ledger('0123456789abcdef'), 'changed.json': ledger('a/../../victim') })
  t.equal((await readLedgerFile(join(dir, 'own.json'))).saltMark, '0123456789abcdef')
  await t.rejects(readLedgerFile(join(dir, 'changed.json')), /is not an erasure ledger/, 'it becomes a part of a name')
})

/** Copies a list; returns false for one that is refused. */
function isComplete(dir: string): boolean {
  try {
    return copyListed(dir).differs === null
  } catch {
    return false
  }
}

/** Puts a file where a list names it, if that is below the test's folder. */
function plant(dir: string, path: string): void {
  const at = join(dir, 'data', normalize(`/${path.replaceAll('\0', '')}`))
  try {
    mkdirSync(dirname(at), { recursive: true })
    writeFileSync(at, CONTENT)
  } catch {
    // A file is where another path has a folder.
  }
}

/** Everything in a folder but the target of the copy. */
function contentOf(dir: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (path.startsWith(join(dir, 'to', '/'))) continue
    found[path] = entry.isFile() ? readFileSync(path, 'utf8') : ''
  }
  return found
}

async function writeBackup(path: string, entries: readonly Entry[]): Promise<void> {
  const list = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
  for (const entry of entries) if ('bytes' in entry) plant(path, entry.path)
  await mkdir(join(path, 'data'), { recursive: true })
  await writeFile(join(path, 'files.ndjson'), list)
  const [files, bytes] = [entries.length, entries.length * CONTENT.length]
  const migrations = { tables: [], writes: 0 }
  const manifest = { format: 1, program: '0.2.0', dataFormat: 1, tablesVersion: '26', migrations, createdAt: '2026' }
  await writeFile(join(path, 'backup.json'), JSON.stringify({ ...manifest, files, bytes, sha256: sha256(list) }))
}

async function tryRestore(backup: string, dataDirectory: string): Promise<string> {
  await mkdir(dirname(dataDirectory), { recursive: true })
  const given = { backup, dataDirectory, ledger: undefined, onProgress: () => undefined, signal }
  return await restore(given).then(
    () => 'restored',
    (error: Error) => error.message
  )
}

const copyTrees = (dir: string, to: string) => {
  const trees = [{ from: join(dir, 'from', 'tables'), to: 'tables' }]
  return copyHere({ kind: 'trees', root: join(dir, to), list: join(dir, 'list'), trees }, () => undefined)
}

const copyListed = (dir: string) => {
  const request = { kind: 'listed', list: join(dir, 'list'), from: join(dir, 'data'), root: join(dir, 'to') } as const
  return copyHere(request, () => undefined)
}

/** Copies as a backup does, then as its restore does. */
async function copyInAndOut(dir: string) {
  copyTrees(dir, 'data')
  return { list: await readFile(join(dir, 'list'), 'utf8'), copied: copyListed(dir) }
}
