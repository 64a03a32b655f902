'use strict'
/*
 * What `npm start`, `npm test` and the other scripts of package.json run: brings a fresh clone to the point where the
 * compiled program can run (dependencies, build), then runs it. JavaScript that old Nodes can read, without
 * dependencies, so that a Node that is too old gets a sentence instead of a syntax error.
 */
const crypto = require('node:crypto')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const childProcess = require('node:child_process')
const supervise = require('./supervise.cjs').supervise

const NODE_MIN = [20, 19]
const ROOT = path.dirname(__dirname)
const INSTALL_STAMP = path.join(ROOT, 'node_modules', '.gamenet-installed')
/**
 * Checkers per project; projects are built at once too. Each reads all declarations: four take 21 s of processor time,
 * one 13 s.
 */
const CHECKERS = String(Math.min(4, Math.ceil(os.cpus().length / 2)))
/** A first install and build print nothing themselves. */
const STILL_MS = 15_000
const PREPARE_LOCK = path.join(ROOT, '.prepare.lock')

main(process.argv.slice(2)).catch((error) => fail(error.stack, 1))

async function main(args) {
  requireNode()
  const mode = args[0]
  const rest = args.slice(1)
  if (canWrite()) await prepare()
  else if (mode !== 'start')
    fail(`${ROOT} cannot be written, and all but \`npm start\` write there; copy it (cp -r) and work in the copy.`, 1)
  if (mode === 'start') return supervise([path.join(__dirname, 'gamenet.cjs'), 'start'].concat(rest))
  if (['test', 'campaign'].includes(mode))
    return run(process.execPath, [path.join(__dirname, 'test', 'run', 'test-run.mjs'), mode].concat(rest))
  if (['bench', 'simulate', 'torture'].includes(mode))
    return run(process.execPath, [path.join(__dirname, 'dist', 'proof', mode, 'main.js')].concat(rest))
  if (mode === 'check') return await check()
  fail(`Unknown mode ${JSON.stringify(mode)}; expected start, test, campaign, check, bench, simulate or torture.`, 2)
}

function requireNode() {
  const found = process.versions.node.split('.').map(Number)
  if (found[0] > NODE_MIN[0] || (found[0] === NODE_MIN[0] && found[1] >= NODE_MIN[1])) return
  fail(`This is Node ${process.versions.node}, but Gamenet Stats needs Node ${NODE_MIN.join('.')} or newer.`, 1)
}

/** A clone on a read-only disk, or of another user, runs as its owner has installed and built it. */
function canWrite() {
  try {
    fs.accessSync(ROOT, fs.constants.W_OK)
    return true
  } catch (_error) {
    return false
  }
}

/** Installs when the lock file is not the one installed last, and builds what changed. One process at a time. */
async function prepare() {
  lock()
  try {
    const wanted = crypto
      .createHash('sha256')
      .update(fs.readFileSync(path.join(ROOT, 'package-lock.json')))
      .digest('hex')
    if (read(INSTALL_STAMP) !== wanted) {
      say('Installing the packages, about 1 GB: a minute or two, only at the first start and after an upgrade.')
      await step('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], 'installing')
      fs.writeFileSync(INSTALL_STAMP, wanted)
    }
    const isBuilt = fs.existsSync(path.join(__dirname, 'dist', 'src', 'main.js'))
    if (!isBuilt) say('Building the program: a minute or less; later starts take a few seconds.')
    await step(process.execPath, [path.join(ROOT, 'sdk', 'make-answers.mjs')], 'writing the types of answers')
    const tsc = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
    await step(process.execPath, [tsc, '-b', '--checkers', CHECKERS], 'building')
  } finally {
    unlock()
  }
}

function lock() {
  const draft = `${PREPARE_LOCK}.${process.pid}`
  for (let waited = 0; ; waited += 1) {
    try {
      // A link appears whole or not at all; a file made in place could be read while it is still empty.
      fs.writeFileSync(draft, String(process.pid))
      fs.linkSync(draft, PREPARE_LOCK)
      return
    } catch (error) {
      if (error.code !== 'EEXIST') fail(`Cannot write in ${ROOT} (${error.code}); give this user write access.`, 1)
    } finally {
      fs.rmSync(draft, { force: true })
    }
    const holder = Number(read(PREPARE_LOCK))
    if (holder > 0 && !isAlive(holder)) unlock()
    if (waited === 5) process.stderr.write(`Waiting for process ${holder}, which installs or builds here…\n`)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
  }
}

function unlock() {
  fs.rmSync(PREPARE_LOCK, { force: true })
}

function isAlive(pid) {
  if (!(pid > 0)) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function read(file) {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** Runs a command to its end, whose output is shown. A long one says at times that it goes on. */
async function step(command, args, doing) {
  const begunMs = Date.now()
  const seconds = () => Math.round((Date.now() - begunMs) / 1000)
  const going = setInterval(() => say(`  still ${doing}, for ${seconds()} s`), STILL_MS)
  const failure = await new Promise((resolve) => {
    const child = childProcess.spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
    child.on('error', (error) => resolve(`: ${error.message}`))
    child.on('exit', (code) => resolve(code === 0 ? undefined : '.'))
  })
  clearInterval(going)
  if (failure === undefined) return
  unlock()
  fail(`\`${path.basename(command)} ${args.join(' ')}\` failed${failure}`, 1)
}

function say(sentence) {
  process.stderr.write(`${sentence}\n`)
}

function run(command, args) {
  const child = childProcess.spawn(command, args, { cwd: ROOT, stdio: 'inherit' })
  child.on('exit', (code, signal) => {
    process.exitCode = signal ? 1 : code
  })
}

/** Format, lint, types, package borders, dead code. */
async function check() {
  const bin = path.join(ROOT, 'node_modules', '.bin')
  await step(path.join(bin, 'biome'), ['ci', '--colors=off', '.'], 'checking format and style')
  await step(path.join(bin, 'turbo'), ['boundaries', '--no-color'], 'checking borders of packages')
  await step(path.join(bin, 'knip'), [], 'looking for dead code')
  process.stdout.write('Format, lint, types, package borders and dead code: nothing to mend.\n')
}

function fail(sentence, code) {
  process.stderr.write(`${sentence}\n`)
  process.exit(code)
}
