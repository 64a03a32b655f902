'use strict'
/*
 * Runs all compiled tests with tap, tells again what failed and where, and closes with the plain line
 * `N passed, N failed` (checks, not files).
 * Arguments are tap's: `npm test -- schemas/dist/test/name-key.test.js` runs one file.
 */
const childProcess = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')

const ROOT = path.dirname(__dirname)
const TAP = path.join(ROOT, 'node_modules', '.bin', 'tap')
/** How much of the failures is told again; `.tap/results.tap` has all. */
const FAILURE_LINES = 300
const RESULTS = path.join(ROOT, '.tap', 'results.tap')
/** Starts the broker and the PostgreSQL that test files share, and ends when its input does. */
const SHARED_ENGINES = path.join(__dirname, 'engines', 'dist', 'src', 'shared', 'main.js')
const FIXTURES = path.join(ROOT, '.tap', 'fixtures')

// tap compiles its set of plugins once for a checkout; a run that has to do it on the way finds no tests.
childProcess.spawnSync(TAP, ['build'], { cwd: ROOT, stdio: 'ignore' })
fs.rmSync(RESULTS, { force: true })
const engines = childProcess.spawn(process.execPath, [SHARED_ENGINES], { stdio: ['pipe', 'pipe', 'inherit'] })
engines.on('exit', (code) => {
  if (code !== 0) process.exitCode = 1
})
engines.stdout.once('data', (url) => {
  const options = ['run', '--reporter=terse', `--output-file=${RESULTS}`].concat(process.argv.slice(2))
  // tap removes a test's folder before the test's own teardowns have closed the engines that still write to it, so that the
  // removal fails now and then: here all folders go at the end.
  const own = { UV_THREADPOOL_SIZE: '16', TAP_SAVE_FIXTURE: '1', GAMENET_TEST_ENGINES: String(url).trim() }
  const run = childProcess.spawn(TAP, options, { cwd: ROOT, stdio: 'inherit', env: { ...own, ...process.env } })
  run.on('exit', (code) => {
    engines.stdin.end()
    finish(code)
  })
})

function finish(code) {
  fs.rmSync(FIXTURES, { force: true, recursive: true })
  const results = fs.existsSync(RESULTS) ? fs.readFileSync(RESULTS, 'utf8') : ''
  const { passed, failed, skipped } = totals(results)
  // tap leaves a code that shows the cursor again, without a line's end: what follows begins on its own.
  process.stdout.write(
    `\n${failures(results)}\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`
  )
  process.exitCode = code === 0 && failed === 0 && passed > 0 ? 0 : 1
}

/** The totals that tap wrote at the end of its results: `# { total: 5, pass: 3, fail: 1, skip: 1 }`. */
function totals(results) {
  const summary = results.match(/^# \{ total: .*\}$/gm)?.at(-1) ?? ''
  const count = (name) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(summary)?.[1] ?? 0)
  return { passed: count('pass'), failed: count('fail'), skipped: count('skip') + count('todo') }
}

/**
 * What failed, as tap's results have it: each failed check with its diagnostics, then (less indented) the tests and the
 * file that it stands in.
 */
function failures(results) {
  let inFailure = false
  const told = []
  for (const line of results.split('\n')) {
    const failed = /^ *not ok \d/.test(line) && !/ # (skip|todo)/i.test(line)
    if (failed) inFailure = true
    else if (/^ *(ok \d|# |\d+\.\.\d+)/.test(line)) inFailure = false
    if (inFailure && line.trim() !== '') told.push(line)
  }
  return told.length === 0 ? '' : `Failed:\n${told.slice(0, FAILURE_LINES).join('\n')}\n`
}
