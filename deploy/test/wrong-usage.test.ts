import { test } from 'tap'
import { gamenet } from './service/gamenet.js'

test('wrong usage is told by what was found, what was expected, and where it is explained', async (t) => {
  for (const [args, ...sentences] of [
    ['begin', /^gamenet has no command "begin"; there are start, ingest/],
    ['strt', /did you mean start\?/],
    ['--bogus', /^gamenet has no option --bogus; its commands have some/],
    ['start --port 80', /^gamenet start has no option --port; it takes --json alone, and settings are environment var/],
    ['start 80', /^gamenet start takes no argument and got 1: "80"; expected: gamenet start \[options\]/],
    ['rebuild mend title', /^gamenet rebuild has no command "mend"; there are plan, status/],
    ['rebuild plan', /^gamenet rebuild plan needs <projection>, which was not given; expected: gamenet rebuild plan /],
    ['rebuild plan a b', /^gamenet rebuild plan takes one argument and got 2: "a" "b"/],
    ['rebuild swap a --accept', /has no option --accept.*it takes --json, --accept-differences/],
    ['parked list --limit', /^gamenet parked list: the option --limit <messages> needs a value, and none was given/],
    ['scrape weather', /^gamenet scrape: <source> cannot be "weather"; expected one of network, games, /],
    ['help mend', /^gamenet has no command "mend"; there are start, ingest/],
    ['help rebuild mend', /^gamenet rebuild has no command "mend"; there are plan, status/],
    ['rebuild help mend', /^gamenet rebuild has no command "mend"; there are plan, status/],
    ['help status all', /^gamenet status has no command "all"; it has none\./],
    // What has no commands below it asks for a name, which may be this one.
    ['forget help me', /^gamenet forget takes one argument and got 2: "help" "me"/],
    ['import undo', /^gamenet import undo needs <importId>/]
  ] as const) {
    const { code, text } = await run(args.split(' '))
    t.equal(code, 2, args)
    for (const sentence of [...sentences, /^[^\n]*\. `gamenet[a-z ]* --help` explains it\.\n$/]) t.match(text, sentence)
  }
})

test('help is no wrong usage, unless nothing was asked', async (t) => {
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

test('the program tells its version', async (t) => {
  t.match(await run(['--version']), { code: 0, text: /^\d+\.\d+\.\d+\n$/ })
})
