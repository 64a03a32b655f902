import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { deployFile } from './service/deployment-files.js'
import { ROOT } from './service/gamenet.js'

/** Where operators keep secrets and data, by our docs or by habit. */
const PLANTED = [
  ...['.env', '.env.local', 'deploy/container/.env', 'deploy/container/.env.production', 'api/.env', 'prod.env'],
  ...['deploy/example/mine.env', 'deploy/container/cluster.env', 'deploy/kubernetes/operator-token'],
  ...[
    'deploy/kubernetes/clickhouse-url',
    'deploy/systemd/postgres-url',
    'operator-token',
    'secrets/tls.key',
    'tls.pem'
  ],
  ...['deploy/example/kafka-password', 'sql-password', 'api/chat-api-token', 'deploy/kubernetes/postgres-listen-url'],
  ...['deploy/container/tls/server.key', 'deploy/container/client.p12', 'deploy/kafka.pfx', 'sdk/ca.pem'],
  ...['data/service.json', 'data/writes/base/5/1259', 'deploy/container/data/log/data.mdb', 'api/data/log/data.mdb'],
  ...['deploy/.campaign/x', '.tap/x', 'start.log', 'deploy/start.log']
]
/** Folders of the root that only an image that copies by name keeps out; Git shows them to their owner. */
const PLANTED_IN_ROOT = [
  'gamenet-data/service.json',
  'backup-2026-11-28/data/writes/x',
  '.ssh/id_ed25519',
  '.git/config'
]

test('an image gets all sources, and no planted secret, data or history', async (t) => {
  const dockerfile = await deployFile('container/Dockerfile')
  t.same(
    dockerfile.match(/^(?:COPY|ADD) .*/gm),
    ['COPY . .', 'COPY --from=build /app /app'],
    'what the rules are about'
  )
  const isCopied = rules(await readFile(new URL('.dockerignore', ROOT), 'utf8'))
  for (const path of [...PLANTED, ...PLANTED_IN_ROOT]) t.notOk(isCopied(path), path)
  const { workspaces } = JSON.parse(await readFile(new URL('package.json', ROOT), 'utf8'))
  const { references } = JSON.parse(await readFile(new URL('tsconfig.json', ROOT), 'utf8'))
  const folders: string[] = [...workspaces, ...references.map(({ path }: { path: string }) => path)]
  const files = [...new Set(folders.flatMap((path) => sourcesUnder(path)))]
  t.ok(files.length > 500, `${files.length} sources`)
  t.same(
    [...files, 'docs/openapi.json', 'package.json', 'package-lock.json', 'tsconfig.json'].filter(
      (path) => !isCopied(path)
    ),
    []
  )
})

test('the rules are those of Docker: the last one that names a path or a folder above it decides', async (t) => {
  const isCopied = rules('# secrets\n*\n!a\n!/b/c/\n**/.env*\na/*/x?\n!**/kept.env\n')
  for (const path of ['a/y', 'a/b/c', 'b/c', 'b/c/d', 'a/b/c/x1', 'a/x1', '.env/kept.env']) t.ok(isCopied(path), path)
  for (const path of ['y', 'b/d', 'a/.env', '.env', 'a/b/.env.d/e', 'a/b/x1', 'a/b/x1/y']) t.notOk(isCopied(path), path)
})

test('no planted secret is added to the history', async (t) => {
  const dir = t.testdir({ '.gitignore': await readFile(new URL('.gitignore', ROOT), 'utf8') })
  try {
    execFileSync('git', ['init', '--quiet', dir], { stdio: 'ignore' })
  } catch {
    return t.comment('NOT TESTED: which files Git ignores; git is not installed.')
  }
  for (const path of [...PLANTED, 'deploy/src/main.ts']) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), 'secret')
  }
  const listed = execFileSync('git', ['ls-files', '--others', '--exclude-standard'], { cwd: dir, encoding: 'utf8' })
  t.same(listed.trim().split('\n'), ['.gitignore', 'deploy/src/main.ts'])
})

/** The rules of a `.dockerignore`, as moby's patternmatcher reads them. */
function rules(text: string): (path: string) => boolean {
  const read = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const isException = line.startsWith('!')
      const pattern = line.slice(isException ? 1 : 0).replace(/^\/|\/$/g, '')
      const source = pattern.replace(/\*\*\/|\*\*|\*|\?|[.+^${}()|[\]\\]/g, (part) => PARTS[part] ?? `\\${part}`)
      return { isException, matches: new RegExp(`^${source}$`) }
    })
  return (path) => {
    const names = path.split('/')
    const ways = names.map((_, at) => names.slice(0, at + 1).join('/'))
    return read.findLast(({ matches }) => ways.some((way) => matches.test(way)))?.isException ?? true
  }
}

const PARTS: Readonly<Record<string, string>> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' }

/** What the build of a workspace reads: everything that is neither installed, built nor made by tests. */
function sourcesUnder(path: string): string[] {
  const folder = fileURLToPath(new URL(path, ROOT))
  if (path.endsWith('.json')) return [path]
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|tsx|sql|json|cjs|mjs|css|html|xml)$/.test(entry.name))
    .map((entry) => join(path, entry.parentPath.slice(folder.length), entry.name))
    .filter((file) => !/(^|\/)(node_modules|dist|\.turbo|\.tap|data)\//.test(file))
}
