import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { ROOT } from './service/gamenet.js'

/*
 * Rules of CONTRIBUTING.md's "Style" that Biome and knip cannot check. A finding has the form `file:line: found; write …`.
 * Biome checks the length of functions and import cycles (types included).
 */

type Rule = { readonly found: RegExp; readonly write: string }

/** Node 20 collects such a timeout, and the signal never aborts. */
const SIGNALS: readonly Rule[] = [{ found: /AbortSignal\.any\(.*AbortSignal\.timeout/, write: 'abortedAfter' }]

/** In a URL, a blank, `#`, `%` and letters beyond ASCII of a folder's name are encoded. */
const PATHS: readonly Rule[] = [
  {
    found: /import\.meta\.url\)\.pathname|\b(?:[A-Z][A-Z_]+|at|folder|module)\.pathname(?! !==|\.endsWith| \+=)/,
    write: 'fileURLToPath'
  }
]

/** Word-for-word translations that English readers stumble over. */
const PROSE: readonly Rule[] = [
  { found: /\b(whom|who(so)?ever)\b/i, write: 'the noun: client, caller, operator, user' },
  { found: /(^|[^\w\s]\s*)who asks\b|\bwhat came\b/i, write: 'the noun: client, request, value' },
  { found: /(?<!, )\bof which\b/i, write: 'a sentence of its own' },
  { found: /\banew\b/i, write: 'again, or the verb with re-: rebuilt, recreated' },
  { found: /\bby way of\b/i, write: 'through' },
  { found: /\bgo(es|ne|ing)? on with\b/i, write: 'continue, resume' },
  { found: /(?<!\bthere )\b(is|are|was|were) no (?!longer|more|other|better|way|one)/i, write: 'is not a, are not' },
  { found: /\bbeside\b/i, write: 'next to, during, with' },
  { found: /\b(set|sets|put|puts) (it |them |parts )?aside\b/i, write: 'detach' },
  { found: /\bfor ever\b/i, write: 'forever' },
  { found: /\bagain and again\b/i, write: 'repeatedly' },
  { found: /\b(told|tells?) of\b/i, write: 'report, announce, publish' },
  { found: /\b(is|are|was|were) told\b/i, write: 'reported, published, notified; learns, differs' },
  { found: /\b(hears?|heard) of\b/i, write: 'learn of, be notified of' },
  { found: /\b(test|it)\((t, )?['"`](what|who|whose|where) /i, write: 'a title that begins with its noun' }
]

/** Files whose statements are PostgreSQL's, which has tables of the same names. */
const ON_POSTGRES = /^api\/src\/(writes\/|queries\/(profile|rating)\.ts)|^ingest\/src\/(people|outbox)\//

/** Applied migrations never change. */
const PLAIN = /^(?!.*\/migrations\/).*\.([cm]?[jt]s|md|yml)$/

/** Characters of a line of the product. */
const LINE_MAX = 120
const TESTS = /(^|\/)(test|testing|demo|proof)\/|\.(test|campaign)\.ts$/
/** Made by each build from texts that are checked where they stand. */
const MADE = ['sdk/src/answers.ts', 'sdk/src/operations.ts']
/** Most files at the root of a package's `src`; more belong into folders named by stage. */
const ROOT_FILES_MAX: Readonly<Record<string, number>> = { projector: 4, sdk: 40 }
const ROOT_FILES_MAX_ELSEWHERE = 6

const root = fileURLToPath(ROOT)
const files = await filesOf('')
const texts = new Map(
  await Promise.all(files.map(async (file) => [file, await readFile(join(root, file), 'utf8')] as const))
)

test('paths of files are made by fileURLToPath', async (t) => {
  t.same(findings(PATHS, /\.[cm]?[jt]s$/), [])
  t.match(PATHS[0]?.found.exec('execFile(node, [STORED.pathname])'), { length: 1 })
})

test('signals with a time limit abort', async (t) => {
  t.same(findings(SIGNALS, /\.[cm]?[jt]s$/), [])
})

test('comments, messages and pages are plain English', async (t) => {
  t.same(findings(PROSE, PLAIN), [])
})

test('few files stand at the root of a package', async (t) => {
  const counts = new Map<string, number>()
  for (const file of files) {
    const [, home] = /^(.*)\/src\/[^/]+\.ts$/.exec(file) ?? []
    if (home !== undefined) counts.set(home, (counts.get(home) ?? 0) + 1)
  }
  t.same(
    [...counts].filter(([home, count]) => count > (ROOT_FILES_MAX[home] ?? ROOT_FILES_MAX_ELSEWHERE)),
    []
  )
})

test('statements of answers and of ingest name tables by parameters, and none of bookkeeping', async (t) => {
  const tables = Object.keys(JSON.parse(await readFile(new URL('projector/definitions.json', ROOT), 'utf8')))
  t.ok(tables.length > 60)
  const bare = new RegExp(`\\b(?:FROM|JOIN|INTO|TABLE)\\s+(?:${tables.join('|')})\\b`)
  t.same(
    [...texts].flatMap(([file, text]) => {
      if (!/^(api|ingest)\/src\//.test(file) || ON_POSTGRES.test(file)) return []
      // When late events and those of undone imports were known is in tables without generations.
      if (file === 'api/src/queries/known-events.ts') return []
      return text.split('\n').flatMap((line, at) => (bare.test(line) ? [`${file}:${at + 1}: ${line.trim()}`] : []))
    }),
    []
  )
})

test('no line of the product is longer than 120 characters', async (t) => {
  const counts = [...texts].flatMap(([file, text]) => {
    if (!/\.([cm]?[jt]s|css|html|sql)$/.test(file) || TESTS.test(file)) return []
    const count = text.split('\n').filter((line) => line.length > LINE_MAX).length
    return count > 0 ? [`${file}: ${count} lines over ${LINE_MAX} characters`] : []
  })
  t.same(counts, [])
})

test('ARCHITECTURE.md stays short', async (t) => {
  const page = texts.get('ARCHITECTURE.md') ?? ''
  const glossary = /^## Glossary\n(.*?)^## /ms.exec(page)?.[1] ?? ''
  const terms = [...glossary.matchAll(/^\| (?!term \|)/gm)].length
  t.ok(terms > 0 && terms <= 40, `${terms} terms; at most 40`)
  const lines = page.split('\n')
  t.ok(lines.length <= 151, 'at most 150 lines')
  t.same(
    lines.filter((line) => line.length > LINE_MAX),
    []
  )
})

test('links between pages have targets', async (t) => {
  const broken: string[] = []
  for (const [file, text] of texts) {
    // The API's guides are pages of the site, whose links another test follows.
    if (!file.endsWith('.md') || file === 'api/src/pages/guides.md') continue
    for (const [, path = '', anchor] of text.matchAll(/\]\(([^)\s:#]*)(?:#([^)\s]+))?\)/g)) {
      const target = path === '' ? file : normalize(join(dirname(file), path))
      const isThere = existsSync(join(root, target))
      if (!isThere || (anchor !== undefined && !anchorsOf(texts.get(target) ?? '').includes(anchor))) {
        broken.push(`${file}: ${path}${anchor === undefined ? '' : `#${anchor}`}`)
      }
    }
  }
  t.same(broken, [])
})

function findings(rules: readonly Rule[], names: RegExp): string[] {
  const own = normalize('deploy/test/style.test.ts')
  return [...texts].flatMap(([file, text]) => {
    if (file === own || !names.test(file)) return []
    return text.split('\n').flatMap((line, at) =>
      rules.flatMap(({ found, write }) => {
        const [word] = found.exec(line) ?? []
        return word === undefined ? [] : [`${file}:${at + 1}: ${word}; write ${write}`]
      })
    )
  })
}

/** Anchors as GitHub derives them from headings. */
function anchorsOf(page: string): string[] {
  return [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
  )
}

/** Paths of the source files below a folder. */
async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true })
  const found = await Promise.all(
    entries.map((entry) => {
      const path = join(folder, entry.name)
      if (entry.isFile()) return !MADE.includes(path) && /\.([cm]?[jt]s|md|sql|yml|html|css)$/.test(path) ? [path] : []
      return entry.name.startsWith('.') || /^(node_modules|dist|data|real-input)$/.test(entry.name) ? [] : filesOf(path)
    })
  )
  return found.flat()
}

test('the lock file has the integrity of every package and no address of a registry', async (t) => {
  const text = await readFile(new URL('package-lock.json', ROOT), 'utf8')
  type Package = { readonly link?: boolean; readonly integrity?: string }
  const packages: readonly (readonly [string, Package])[] = Object.entries(JSON.parse(text).packages)
  const without = packages.filter(([path, { link, integrity }]) => /node_modules/.test(path) && !link && !integrity)
  // The registry has none of these three; npm skips them on this platform.
  const libraries = ['darwin-arm64', 'darwin-x64', 'linux-arm64-gnu'].map((name) => `node_modules/@chdb/lib-${name}`)
  t.same(
    without.map(([path]) => path),
    libraries
  )
  t.notMatch(text, /"resolved": "http/)
})
