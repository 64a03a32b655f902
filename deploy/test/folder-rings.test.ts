import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { ROOT } from './service/gamenet.js'

/** Where the folders of a package begin. Files directly in it are entry points, which may import any of them. */
const PACKAGE = /^(?:[\w-]+\/(?:engines\/)?src|deploy\/(?:proof|demo|engines\/testing))(?=\/)/
/** Imports for values and types, static and dynamic. */
const IMPORTS = /(?:\bfrom|\bimport\b\s*\(?)\s*['"](\.{1,2}\/[^'"]+)['"]/g

const fileRoot = fileURLToPath(ROOT)

type Import = readonly [from: string, to: string]

test('no folders import each other in a ring, at any depth', async (t) => {
  const imports = await importsOfFolders()
  t.ok(imports.length > 1000, `${imports.length} imports between folders`)
  t.same(ringsOf(imports), [])
})

test('a ring is found between folders, and between a folder and the files above it', (t) => {
  const chain: Import[] = [
    ['src/a', 'src/b/x'],
    ['src/b/y', 'src/c'],
    ['src/c', 'src/d']
  ]
  t.same(ringsOf(chain), [])
  t.same(ringsOf([...chain, ['src/c/z', 'src/a']]), ['src/a → src/b', 'src/b → src/c', 'src/c → src/a'])
  const nested: Import[] = [
    ['src/a', 'src/a/x'],
    ['src/a/x', 'src/a']
  ]
  t.same(ringsOf(nested), ['src/a/* → src/a/x', 'src/a/x → src/a/*'])
  t.end()
})

test('imports of every kind are found', (t) => {
  const text = `import a from './a/1.js'\nimport type { B } from "../b/2.js"\nimport './c/3.js'
    export * from './d/4.js'\nconst e = await import('./e/5.js')\ntype F = import('./f/6.js').F\nimport g from 'g'`
  t.same(specifiersIn(text), ['./a/1.js', '../b/2.js', './c/3.js', './d/4.js', './e/5.js', './f/6.js'])
  t.end()
})

/** Returns the imports between different folders of one package, as (folder, folder). */
async function importsOfFolders(): Promise<Import[]> {
  const imports: Import[] = []
  const entries = await readdir(ROOT, { recursive: true, withFileTypes: true })
  for (const entry of entries) {
    const file = normalize(join(entry.parentPath, entry.name)).slice(fileRoot.length)
    const [home] = PACKAGE.exec(file) ?? []
    if (home === undefined || !/\.tsx?$/.test(file) || /\/(dist|node_modules)\//.test(file)) continue
    const from = dirname(file)
    for (const specifier of specifiersIn(await readFile(new URL(file, ROOT), 'utf8'))) {
      const to = dirname(normalize(join(from, specifier)))
      if (from !== to && from !== home && to.startsWith(`${home}/`)) imports.push([from, to])
    }
  }
  return imports
}

function specifiersIn(text: string): string[] {
  return [...text.matchAll(IMPORTS)].map(([, specifier = '']) => specifier)
}

/** Returns the imports that belong to rings, each between the folders at which the two paths part. */
function ringsOf(imports: readonly Import[]): string[] {
  const texts = new Set(imports.map(([from, to]) => partingOf(from, to).join(' → ')))
  let edges = [...texts].map((text) => text.split(' → '))
  for (;;) {
    // An import is part of a ring only while its importer is imported, and what it imports imports something.
    const importers = new Set(edges.map(([from]) => from))
    const imported = new Set(edges.map(([, to]) => to))
    const left = edges.filter(([from, to]) => imported.has(from) && importers.has(to))
    if (left.length === edges.length) return left.map((edge) => edge.join(' → ')).sort()
    edges = left
  }
}

/** The files of a folder are `folder/*` next to the folders in it. */
function partingOf(from: string, to: string): [string, string] {
  const [a, b] = [from.split('/'), to.split('/')]
  const common = a.findIndex((part, n) => part !== b[n])
  const depth = common < 0 ? a.length : common
  const nameOf = (path: readonly string[]) =>
    path.length === depth ? `${path.join('/')}/*` : path.slice(0, depth + 1).join('/')
  return [nameOf(a), nameOf(b)]
}
