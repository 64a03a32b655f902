import { readdir, readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { test } from 'tap'
import { readConfig } from '../src/config.js'
import { withStandardInput } from '../src/terminal/standard-input.js'
import { gamenet } from './service/gamenet.js'

test('wrong usage is reported with what was found, what was expected, and where it is explained', async (t) => {
  for (const [args, ...sentences] of [
    ['begin', /^gamenet has no command "begin"; there are start, ingest/],
    ['strt', /did you mean start\?/],
    ['--bogus', /^gamenet has no option --bogus; its commands have options/],
    [
      'start --port 80',
      /^gamenet start has no option --port; its only options are --json, --accept-older; settings are environment var/
    ],
    ['start 80', /^gamenet start takes no argument and got 1: "80"; expected: gamenet start \[options\]/],
    ['rebuild mend title', /^gamenet rebuild has no command "mend"; there are plan, status/],
    ['rebuild plan', /^gamenet rebuild plan needs <projection>, which was not given; expected: gamenet rebuild plan /],
    ['rebuild plan a b', /^gamenet rebuild plan takes one argument and got 2: "a" "b"/],
    ['rebuild swap a --accept', /has no option --accept.*it takes --json, --accept-differences/],
    [
      'dead-letters list --limit',
      /^gamenet dead-letters list: the option --limit <messages> needs a value, and none was given/
    ],
    ['scrape weather', /^gamenet scrape: <source> cannot be "weather"; expected one of network, games, /],
    ['help mend', /^gamenet has no command "mend"; there are start, ingest/],
    ['help rebuild mend', /^gamenet rebuild has no command "mend"; there are plan, status/],
    ['rebuild help mend', /^gamenet rebuild has no command "mend"; there are plan, status/],
    ['help status all', /^gamenet status has no command "all"; it has none\./],
    // What has no commands below it asks for a name, which may be this one.
    ['erase help me', /^gamenet erase takes one argument and got 2: "help" "me"/],
    ['erase help me', /^gamenet erase takes one argument and got 2: "help" "me"/],
    ['import undo', /^gamenet import undo needs <importId>/]
  ] as const) {
    const { code, text } = await run(args.split(' '))
    t.equal(code, 2, args)
    for (const sentence of [...sentences, /^[^\n]*\. `gamenet[a-z -]* --help` explains it\.\n$/])
      t.match(text, sentence)
  }
})

test('help is not wrong usage, but a missing command is', async (t) => {
  t.match(await run(['rebuild', '--help']), { code: 0, text: /Usage: gamenet rebuild/ })
  for (const args of ['help rebuild plan', 'rebuild help plan'])
    t.match(await run(args.split(' ')), { code: 0, text: /^Usage: gamenet rebuild plan / })
  t.match(await run(['help']), { code: 0, text: /^Usage: gamenet \[options\]/ })
  t.match(await run(['rebuild']), { code: 2, text: /Usage: gamenet rebuild/ })
  t.match(await run([]), { code: 2, text: /Usage: gamenet/ })
})

async function run(args: readonly string[]) {
  const { code, stdout, stderr } = await gamenet({}, args)
  return { code, text: stdout + stderr }
}

test('the program prints its version', async (t) => {
  t.match(await run(['--version']), { code: 0, text: /^\d+\.\d+\.\d+\n$/ })
})

test('standard input is stored while it is used, and refused if the disk has no space for it', async (t) => {
  const before = process.env.TMPDIR
  t.teardown(() => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  })
  const directory = t.testdir()
  process.env.TMPDIR = directory
  const config = (freeMinBytes: number) => () => readConfig({ DISK_FREE_MIN_BYTES: String(freeMinBytes) })
  const text = (file: string) => readFile(file, 'utf8')
  t.equal(await withStandardInput({ input: Readable.from([Buffer.from('a,b')]), config: config(0) }, text), 'a,b')
  t.same(await readdir(directory), [])
  let taken = 0
  const endless = async function* () {
    for (;;) {
      taken += 1
      yield Buffer.alloc(65_536, 'x')
    }
  }
  const given = () => ({ input: Readable.from(endless()), config: config(0) })
  await t.rejects(withStandardInput(given(), text), {
    message: /^Standard input has a row that does not end within 16777216 bytes; expected a row per line/
  })
  t.ok(taken < 500, 'an endless line is not read on')
  taken = 0
  const input = Readable.from(endless())
  await t.rejects(withStandardInput({ input, config: config(Number.MAX_SAFE_INTEGER) }, text), {
    name: 'Error',
    message:
      /^Standard input is kept in .* until it ends\. 0 bytes have arrived; .* must stay free .* set TMPDIR to a larger disk/
  })
  t.ok(taken < 100, 'the rest is not read')
  t.same(await readdir(directory), [], 'and nothing of it is left')
  const failing = withStandardInput({ input: Readable.from([Buffer.from('a')]), config: config(0) }, async () => {
    throw new Error('the import failed')
  })
  await t.rejects(failing, /the import failed/)
  t.same(await readdir(directory), [])
})
