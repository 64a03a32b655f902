/*
 * Runs compiled test files: `npm test` all but the campaigns, `npm run campaign` the campaigns. Prints a line per file,
 * then what failed and where, the slowest files, and the plain line `N passed, N failed` (checks, not files). Further
 * arguments choose files by a part of their path: `npm test -- name-key`.
 *
 * A campaign has a directory that stays between runs (CAMPAIGN_DIRECTORY), in which an interrupted one resumes. One
 * that passed runs again only when it is named or the program has changed.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { t } from 'tap'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/**
 * The packages with the longest processes first, so that none runs alone at the end, and how many of their files share
 * a process. A process imports the program, creates tables, compiles PGlite and optimizes what runs often: up to 4 s of
 * processor time.
 */
const FILES_PER_PROCESS = { deploy: 9, projector: 12, 'deploy/engines': 4, api: 13, ingest: 14, sdk: 12, schemas: 24 }
const PACKAGES = Object.keys(FILES_PER_PROCESS)
/** Long files whose process runs no service, so that it gains nothing from others. */
const SEPARATE = ['power', 'simulate', 'torture'].map((name) => `deploy/dist/test/${name}.test.js`)
const TEST_FILES = fileURLToPath(new URL('test-files.mjs', import.meta.url))
const PROCESSOR_TIME = new URL('test-processor-time.mjs', import.meta.url).href
/** Where tests keep their files: in memory where it has this much room, since every insert and commit is flushed. */
const FIXTURES = path.join(ROOT, '.tap', 'fixtures')
const MEMORY = '/dev/shm'
const MEMORY_FREE_MIN_BYTES = 8 * 1024 ** 3
/**
 * Starts the broker, the ClickHouse and the PostgreSQL that test files share, each when a file first asks; ends when its input does.
 */
const SHARED_ENGINES = path.join(ROOT, 'deploy', 'engines', 'dist', 'testing', 'shared', 'main.js')
/** In a campaign's directory: the program that it passed on. */
const PASSED = 'passed'
/** Ten times what the slowest one takes on an idle machine: reached only by a test that hangs. */
const FILE_SECONDS_MAX = 600
const CAMPAIGN_SECONDS_MAX = 24 * 3600
/**
 * Without the budget of WebAssembly each PGlite costs a second of processor time more; `deploy/gamenet.cjs` says why.
 * Its module was validated when `deploy/test/run/test-files.mjs` compiled it.
 */
const NODE_ARGS = [
  '--wasm-tiering-budget=500000000',
  '--wasm-lazy-validation',
  '--max-semi-space-size=64',
  '--import',
  PROCESSOR_TIME
]
/**
 * tap adds a loader to NODE_OPTIONS that measures coverage in the test file, its threads and all processes that it
 * starts. Nothing reads the coverage, and it took a third of the processor time, so `env` restores the variable.
 */
const WITHOUT_COVERAGE = `NODE_OPTIONS=${process.env.NODE_OPTIONS ?? ''}`
/** How many lines of failures are printed again; the results have all. */
const FAILURE_LINES = 300
const SLOWEST = 10

const began = performance.now()
const [tier, ...parts] = process.argv.slice(2)
const isCampaign = tier === 'campaign'
/**
 * Failures of named files name lines of the sources; maps take a sixth of the time of imports, in each process and
 * thread.
 */
const SOURCE_MAPS = parts.length > 0 || isCampaign ? ['--enable-source-maps'] : []
/**
 * What tests run some hundred times is not worth optimizing, which took a tenth of the processor time; campaigns
 * measure. Later Nodes than 20 lack the setting.
 */
const LATE_OPTIMIZATION = isCampaign || !process.versions.node.startsWith('20.') ? [] : ['--interrupt-budget=1000000']
const all = allFiles()
const RESULTS = path.join(ROOT, '.tap', `results-${tier}.tap`)
const unknown = parts.find((part) => !all.some((file) => file.includes(part)))
if (unknown !== undefined) {
  process.stderr.write(`No test file has ${JSON.stringify(unknown)} in its path; there are:\n${all.join('\n')}\n`)
  process.exit(2)
}
fs.rmSync(RESULTS, { force: true })
fs.mkdirSync(path.dirname(RESULTS), { recursive: true })
const removeFixtures = makeFixtures()
const output = fs.createWriteStream(RESULTS)
// Each file has a time limit of its own.
t.setTimeout(0)
t.register()
t.pipe(output)
// Three more than there are processors: files wait for half of their time.
t.jobs = isCampaign ? 1 : os.availableParallelism() + 3
// ClickHouse flushes each insert.
const engines = spawn(process.execPath, [SHARED_ENGINES, path.join(FIXTURES, 'clickhouse')], {
  stdio: ['pipe', 'pipe', 'inherit']
})
const enginesUrl = String(await once(engines.stdout, 'data')).trim()
const ran = (await Promise.all(groupsOf(chosenFiles()).map(runFiles))).flat()
const enginesEnded = once(engines, 'exit')
engines.stdin.end()
await enginesEnded
t.end()
await finished(output)
removeFixtures()
process.stdout.write(report(fs.readFileSync(RESULTS, 'utf8')))
process.exitCode = sum('failed') === 0 && (sum('passed') > 0 || isCampaign) ? 0 : 1

/**
 * The compiled test files of this tier, as paths from the root: by their sources, since a build keeps what was compiled
 * before.
 */
function allFiles() {
  return PACKAGES.flatMap((name) => {
    const directory = path.join(ROOT, name, 'test')
    const found = fs.existsSync(directory) ? fs.readdirSync(directory, { recursive: true }).sort() : []
    return found
      .filter((file) => file.endsWith('.test.ts') && file.endsWith('.campaign.test.ts') === isCampaign)
      .map((file) => path.posix.join(name, 'dist', 'test', file.replace(/ts$/, 'js')))
  })
}

function chosenFiles() {
  if (parts.length > 0) return all.filter((file) => parts.some((part) => file.includes(part)))
  if (!isCampaign) return all
  const hash = programHash()
  const left = all.filter((file) => read(path.join(campaignDirectory(file), PASSED)) !== hash)
  process.stdout.write(`${all.length - left.length} of ${all.length} campaigns have passed on this program.\n`)
  return left
}

/** The files of each process. */
function groupsOf(files) {
  return PACKAGES.flatMap((name) => {
    const ofPackage = files.filter((file) => file.startsWith(`${name}/dist/`))
    const isSeparate = (file) => isCampaign || SEPARATE.includes(file)
    const sharing = ofPackage.filter((file) => !isSeparate(file))
    const processes = Math.ceil(sharing.length / FILES_PER_PROCESS[name])
    // Neighbours are often of one kind, and long together.
    const groups = Array.from({ length: processes }, (_, n) => sharing.filter((_file, at) => at % processes === n))
    return [...groups, ...ofPackage.filter(isSeparate).map((file) => [file])]
  })
}

/** Returns what removes them. */
function makeFixtures() {
  fs.rmSync(FIXTURES, { force: true, recursive: true })
  if (!isCampaign && fs.existsSync(MEMORY)) {
    const { bavail, bsize } = fs.statfsSync(MEMORY)
    if (bavail * bsize >= MEMORY_FREE_MIN_BYTES) {
      const directory = fs.mkdtempSync(path.join(MEMORY, 'tests-of-gamenet-'))
      fs.symlinkSync(directory, FIXTURES)
      // Without the link: a test file that runs alone could not create the directory at its dangling path.
      const remove = () => {
        for (const each of [FIXTURES, directory]) fs.rmSync(each, { force: true, recursive: true })
      }
      process.once('exit', remove)
      for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
      return remove
    }
  }
  return () => fs.rmSync(FIXTURES, { force: true, recursive: true })
}

/**
 * What a file's tests have left. They cannot remove it themselves: tap does so before a test's teardowns have closed
 * the engines in it.
 */
function removeFixturesOf(file) {
  const prefix = file.replaceAll('/', '-')
  const left = fs.existsSync(FIXTURES) ? fs.readdirSync(FIXTURES).filter((name) => name.startsWith(prefix)) : []
  for (const name of left) fs.rmSync(path.join(FIXTURES, name), { force: true, recursive: true })
}

function read(file) {
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : ''
}

/** Runs files one after the other in one process. A process that ends early fails the files that it has not ended. */
async function runFiles(files) {
  const [first] = files
  const directory = campaignDirectory(first)
  if (isCampaign) fs.mkdirSync(directory, { recursive: true })
  const timeout = isCampaign ? CAMPAIGN_SECONDS_MAX : FILE_SECONDS_MAX
  const running = t.spawn(
    'env',
    [WITHOUT_COVERAGE, process.execPath, ...SOURCE_MAPS, ...LATE_OPTIMIZATION, ...NODE_ARGS, TEST_FILES, ...files],
    {
      name: files.join(' '),
      cwd: ROOT,
      buffered: true,
      timeout: timeout * 1000,
      env: {
        TAP_SAVE_FIXTURE: '1',
        GAMENET_TEST_ENGINES: enginesUrl,
        ...process.env,
        TAP_TIMEOUT: String(timeout),
        ...(isCampaign ? { CAMPAIGN_DIRECTORY: directory } : {})
      }
    }
  )
  let before = { seconds: 0, processor: 0, pass: 0, fail: 0, skip: 0 }
  const ended = []
  const end = (now, isPassed) => {
    const since = (what) => now[what] - before[what]
    const failed = isPassed ? 0 : Math.max(1, since('fail'))
    // Before each file, a test of deploy/test/run/test-files.mjs passes.
    const passed = Math.max(0, since('pass') - 1)
    const [seconds, processorSeconds] = [since('seconds'), since('processor')]
    const each = {
      file: files[ended.length],
      seconds,
      processorSeconds,
      passed,
      failed,
      skipped: since('skip')
    }
    ended.push(each)
    before = now
    process.stdout.write(`${isPassed ? 'ok    ' : 'NOT OK'} ${timesOf(each)}  ${passed} passed, ${failed} failed\n`)
  }
  let taken = { seconds: 0, processor: 0 }
  const readTimes = (comment) => {
    const [, seconds, processor] = /^# seconds: ([\d.]+), processor seconds: ([\d.]+)/.exec(comment) ?? []
    if (seconds === undefined) return false
    taken = { seconds: Number(seconds), processor: Number(processor) }
    return true
  }
  const { parser, counts } = running.subtest
  // The test behind a file says its times; those of the last file are the process's.
  parser.on('child', (child) =>
    child.on('comment', (comment) => {
      if (readTimes(comment)) end({ ...taken, ...counts }, counts.fail === before.fail)
    })
  )
  parser.on('comment', readTimes)
  const isPassed = (await running)?.ok === true
  removeFixturesOf(first)
  // A process that ended early fails the files that it has not ended; a file that failed before does not fail the last
  // one.
  const isLastPassed = isPassed || (ended.length === files.length - 1 && ended.some(({ failed }) => failed > 0))
  while (ended.length < files.length) end({ ...taken, ...counts }, isLastPassed && counts.fail === before.fail)
  if (isCampaign && isPassed) fs.writeFileSync(path.join(directory, PASSED), programHash())
  return ended
}

function campaignDirectory(file) {
  return path.join(ROOT, '.campaign', path.basename(file, '.campaign.test.js'))
}

function timesOf({ file, seconds, processorSeconds }) {
  return `${seconds.toFixed(1).padStart(6)} s, processor ${processorSeconds.toFixed(1).padStart(5)} s  ${file}`
}

/** What was compiled; it changes with every change of the program or its tests. */
function programHash() {
  const hash = createHash('sha256')
  for (const name of PACKAGES) {
    const directory = path.join(ROOT, name, 'dist')
    const found = fs.existsSync(directory) ? fs.readdirSync(directory, { recursive: true }).sort() : []
    for (const file of found.filter((each) => each.endsWith('.js')))
      hash.update(fs.readFileSync(path.join(directory, file)))
  }
  return hash.digest('hex')
}

function report(results) {
  const slowest = [...ran].sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST)
  const seconds = Math.round((performance.now() - began) / 1000)
  const processor = Math.round(ran.reduce((sum, { processorSeconds }) => sum + processorSeconds, 0))
  return [
    failures(results),
    ...(isCampaign ? figures(results) : []),
    `${ran.length} files in ${seconds} s, processor ${processor} s; the slowest:`,
    ...slowest.map((each) => `  ${timesOf(each)}`),
    '',
    `${sum('passed')} passed, ${sum('failed')} failed${sum('skipped') > 0 ? `, ${sum('skipped')} skipped` : ''}`,
    ''
  ].join('\n')
}

function sum(what) {
  return ran.reduce((total, each) => total + each[what], 0)
}

/** What campaigns say of themselves: tap's comments, without its own. */
function figures(results) {
  const said = results.split('\n').filter((line) => /^ *# (?!Subtest|time=|seconds: |\{ total)/.test(line))
  return said.map((line) => line.trim().slice(2))
}

/** Each failed check with its diagnostics, then (less indented) the tests and the file that it stands in. */
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
