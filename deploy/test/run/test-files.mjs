/*
 * Runs test files one after the other in this process, and says after each how long they have taken;
 * deploy/test/run/test-run.mjs reads it.
 */
import asyncHooks from 'node:async_hooks'
import { readFileSync } from 'node:fs'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { timeTaken } from './test-processor-time.mjs'

const files = process.argv.splice(2)
// tap names the directories of tests after the file that was started.
process.argv[1] = path.resolve(files[0])
const { t } = await withoutHooks(() => import('tap'))
// While a module of these bytes lives, each PGlite of the process runs code that an earlier one has compiled: 0.3 s
// less a start.
const pglite = createRequire(new URL('../../engines/package.json', import.meta.url)).resolve('@electric-sql/pglite')
globalThis.compiledPglite = await WebAssembly.compile(readFileSync(path.join(path.dirname(pglite), 'pglite.wasm')))
// A test that exceeds it deletes the option.
const limit = t.options.timeout
let imported
// tap ends a run in which no test waits.
t.test('all files are imported', () => new Promise((resolve) => (imported = resolve)))
for (const [n, file] of files.entries()) {
  await import(pathToFileURL(file).href)
  // The last file takes until the process ends, which says the same.
  if (n < files.length - 1) t.test(`end of ${file}`, async (ended) => beginNext(ended))
}
imported()

/**
 * Says the time of the file that has ended. The time limit counts from here on, so that a test that hangs ends the run
 * soon.
 */
function beginNext(ended) {
  ended.comment(timeTaken())
  t.setTimeout(limit)
}

/**
 * Keeps tap from hooks that run for each promise, by which it finds the test that an uncaught error belongs to: they
 * took a quarter of the processor time. Without them, an uncaught error ends the process, which fails its files.
 */
async function withoutHooks(load) {
  const { createHook } = asyncHooks
  const replace = (create) => {
    asyncHooks.createHook = create
    syncBuiltinESMExports()
  }
  replace(() => ({ enable() {}, disable() {} }))
  const loaded = await load()
  replace(createHook)
  return loaded
}
