import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { freePort, until } from '@gamenet/engines/testing'
import { type Test, test } from 'tap'
import { OPERATOR_TOKEN, ROOT, startGamenet } from './service/gamenet.js'
import { type Fence, pagesForUsers, readPage, samplesOf } from './service/page-samples.js'

/*
 * Runs every sample of /docs, of README, sdk/README and docs/*.md as printed, against a service as `npm start` runs it, with the demo
 * network. The head of page-samples.ts explains the marks of samples that do not run here; runbook.test.ts runs docs/operators.
 */

/** The environment of `npm start`, with a fifth of the requests for boards until samples have what they ask for. */
const AS_STARTED = { SCRAPE_MATCHES_SECONDS: '60', SCRAPE_BOARDS_SECONDS: '300', SCRAPE_PLAYERS_SECONDS: '60' }
const FILLING = { SCRAPE_REQUESTS_PER_SECOND: '10' }
/** The rest of the boards would take most of the test's processor time. */
const FILLED = { SCRAPE_REQUESTS_PER_SECOND: '1' }
/** The demo's past takes a minute of processor time; a new user pastes samples before it is there. */
const WITHOUT_HISTORY = { seed: 1, until: '2020-01-01T00:00:00.000Z', done: [], finished: true }
/** Options of Node that make samples for browsers run. */
const AS_BROWSER = ['--experimental-eventsource', '--disable-warning=UNDICI-ES']
/** How many fences of all pages have the mark `[not run: …]`. */
const NOT_RUN = 6
/** Operations whose list is rightly empty. */
const EMPTY = ['getCoverage']
/** Addresses of pages and of their service. */
const PRINTED = 'http://127.0.0.1:8080'
const STREAM_SECONDS = 5
/** Reached only by a hang. */
const ANSWER_SECONDS = 300
/** The page takes a twentieth of a second. */
const LOOK_MS = 2000

type Service = { readonly apiUrl: string; readonly operatorUrl: string; readonly directory: string }
type Ran = { readonly code: number | string; readonly stdout: string; readonly stderr: string }

/**
 * Before the lines of a shell: a `curl` that fails on refusals and on answers without a body, and ends streams; `npx gamenet` without
 * the time that npx takes.
 */
const SHELL = `set -eo pipefail
curl() {
  local code=0 seconds=${ANSWER_SECONDS}
  case "$*" in *api/stream*) seconds=${STREAM_SECONDS} ;; esac
  command curl -sS --fail-with-body --max-time $seconds "$@" > .body || code=$?
  case "$*" in *-O*|*-D*|*-o*) ;; *) test -s .body || { echo "empty: $*" >&2; return 1; } ;; esac
  cat .body
  case "$*:$code" in *api/stream*:28) return 0 ;; esac
  return $code
}
npx() { shift; node "$GAMENET" "$@"; }
`

test('every sample runs as printed on a service as npm start runs it', async (t) => {
  const directory = t.testdir({ node_modules: { '@gamenet': { sdk: t.fixture('symlink', pathOf('sdk')) } } })
  const questions = join(directory, 'questions')
  await mkdir(questions)
  for (const { mark, text } of samplesOf('docs/questions.md', await readPage('docs/questions.md'))) {
    const [, name] = /^question (.+)$/.exec(mark ?? '') ?? []
    if (name !== undefined) await writeFile(join(questions, `${name}.sql`), text)
  }
  // The page at /docs names the configured port, so 0 is of no use.
  const environment = {
    ...AS_STARTED,
    PORT: String(await freePort()),
    DATA_DIR: join(directory, 'data'),
    QUESTIONS_DIR: questions
  }
  await mkdir(environment.DATA_DIR)
  await writeFile(join(environment.DATA_DIR, 'demo-history.json'), JSON.stringify(WITHOUT_HISTORY))
  await writeInputs(directory)
  const filling = await startGamenet({ ...environment, ...FILLING })
  t.teardown(() => filling.kill())
  await untilFilled(filling.apiUrl ?? '')
  await filling.stop()
  const running = await startGamenet({ ...environment, ...FILLED })
  t.teardown(() => running.kill())
  const service: Service = { apiUrl: running.apiUrl ?? '', operatorUrl: running.operatorUrl, directory }

  await t.test('/docs', (t) => runReference(t, service))
  const pages = await Promise.all((await pagesForUsers()).map(async (page) => ({ page, text: await readPage(page) })))
  for (const { page, text } of pages) await t.test(page, (t) => runPage(t, service, samplesOf(page, text)))
  await t.test('addresses in the text of pages are answered', async (t) => {
    for (const { page, text } of pages) await requestAddresses(t, service, page, text)
  })
  const marks = pages.flatMap(({ page, text }) => samplesOf(page, text).map(({ mark }) => ({ page, mark })))
  const notRun = marks.filter(({ mark }) => mark?.startsWith('not run: '))
  t.equal(notRun.length, NOT_RUN, `marked as not run: ${notRun.map(({ page }) => page).join(', ')}`)
})

/** The samples of the page that the service serves: in curl, in TypeScript and in Python. */
async function runReference(t: Test, { apiUrl, directory }: Service): Promise<void> {
  const html = await readReference(apiUrl)
  t.notMatch(html, /names below are inventions|nobody can sign in/)
  const found = [...html.matchAll(/<pre[^>]*aria-label="(?:(\w+) in (\w+)|Example)"><code>([\s\S]*?)<\/code>/g)]
  const samples = found.map(([, id = 'guide', language = 'curl', text = '']) => ({ id, language, text: decoded(text) }))
  const of = (wanted: string) => samples.filter(({ language }) => language === wanted)
  t.ok(of('curl').length > 55 && of('TypeScript').length > 45 && of('Python').length > 50)
  for (const { id, text } of of('curl')) {
    const { code, stdout, stderr } = await shell(directory, {}, text)
    t.equal(code, 0, `${id}: ${text}\n${stdout.slice(-300)}${stderr}`)
    if (!EMPTY.includes(id)) t.notMatch(stdout, /^(\[\]|\{\}|\{"\w+":\[\](,"count":0)?\})$/, `${id} has rows: ${text}`)
  }
  await runModules(t, directory, of('TypeScript'))
  await runPython(t, directory, of('Python'))
}

/** Runs each in a module of its own, all in one process. */
async function runModules(t: Test, directory: string, samples: readonly { id: string; text: string }[]) {
  const files = await Promise.all(
    samples.map(async ({ id, text }) => {
      const file = join(directory, `${id}.mjs`)
      await writeFile(file, text)
      return file
    })
  )
  const main = `for (const file of ${JSON.stringify(files)}) {
  let printed = 0
  console.log = (value) => { printed += value === undefined ? 0 : 1 }
  try { await import(file) } catch (error) { console.error(file, error) }
  if (printed === 0) console.error(file, 'prints nothing')
}`
  const { code, stderr } = await run(process.execPath, ['--input-type=module', '-e', main], { cwd: directory })
  t.same({ code, stderr }, { code: 0, stderr: '' }, 'TypeScript')
}

async function runPython(t: Test, directory: string, samples: readonly { id: string; text: string }[]) {
  const hasRequests = await run('python3', ['-c', 'import requests'], {})
  if (hasRequests.code !== 0) {
    t.equal(process.env.CI, undefined, 'NOT TESTED: the samples in Python need python3 with requests')
    return
  }
  const main = `import json, sys
samples = json.load(open('samples.json'))
for sample in samples:
    if '/api/stream' in sample['text']: continue
    try: exec(sample['text'], {'print': lambda value: value is not None or sys.exit(1)})
    except BaseException as error: print(sample['id'], repr(error), sample['text'], file=sys.stderr)`
  await writeFile(join(directory, 'samples.json'), JSON.stringify(samples))
  const { code, stderr } = await run('python3', ['-c', main], { cwd: directory })
  t.same({ code, stderr }, { code: 0, stderr: '' }, 'Python')
}

/** Runs the samples of a page, in order. Variables of a shell hold for its later fences. */
async function runPage(t: Test, service: Service, samples: readonly Fence[]): Promise<void> {
  const { directory, operatorUrl } = service
  const environment = { GAMENET: pathOf('deploy/gamenet.cjs'), OPERATOR_URL: operatorUrl, OPERATOR_TOKEN }
  let before = ''
  for (const { page, line, language, mark, text } of samples) {
    const where = `${page}:${line}`
    if (mark !== undefined) {
      t.match(mark, /^(not run: .+|campaign \w+|question [\w-]+)$/, `${where} is marked`)
      continue
    }
    const here = text.replaceAll(PRINTED, service.apiUrl)
    if (language === 'sh') {
      const { code, stdout, stderr } = await shell(directory, environment, before + here)
      t.equal(code, 0, `${where}: ${stdout.slice(-300)}${stderr}`)
      before +=
        here
          .match(/^(?:(?:export )?\w+=|\w+\(\) ).*$/gm)
          ?.map((each) => `${each}\n`)
          .join('') ?? ''
    } else if (language === 'js') {
      const file = join(directory, 'example.mjs')
      await writeFile(file, page === 'docs/sdk.md' ? `${scriptOf(`${service.apiUrl}/service-auth.js`)}\n${here}` : here)
      const { code, stdout, stderr } = await run(process.execPath, [...AS_BROWSER, file], { cwd: directory })
      t.same({ code, stderr }, { code: 0, stderr: '' }, where)
      const lines = stdout.split('\n').length - 1
      t.ok(lines > 0 && lines < 40, `${where} prints ${lines} lines`)
    } else t.fail(`${where} is in ${language}: nothing runs it; mark it`)
  }
}

/** Loads a script as a page does. */
const scriptOf = (url: string) => `(0, eval)(await fetch('${url}').then((script) => script.text()))`

/** Requests each address of the API between backticks that has no placeholder. */
async function requestAddresses(t: Test, { apiUrl }: Service, page: string, text: string): Promise<void> {
  for (const [, address = ''] of text
    .replace(/^```.*?^```$/gms, '')
    .matchAll(/`(?:GET )?(\/(?:api|docs)[^`\s:…{<]*)`/g)) {
    if (address.endsWith('=') || address.endsWith('/') || address.includes('/api/stream')) continue
    // 400: the text names a path without the parameters that it needs.
    const { status } = await fetch(apiUrl + address)
    t.ok(status === 200 || (status === 400 && !address.includes('?')), `${page}: ${address} is ${status}`)
  }
}

/** The files that commands of docs/import.md name. */
async function writeInputs(directory: string): Promise<void> {
  const at = '2020-01-01T00:00:00Z'
  const files = {
    'history.csv.gz': gzipSync(`Timestamp,Peak Player Count\n${at},5\n`),
    'titles.jsonl.gz': gzipSync('{"titleId":"4d530064","name":"Halo 2"}\n'),
    'records.jsonl': `{"titleId":"4d530064","leaderboardId":900,"player":"ann","date":"${at}","rating":"7"}\n`,
    'lobbies.jsonl.gz': gzipSync(`{"ts":"${at}","id":"ann","players":2}\n`),
    'sightings.jsonl.gz': gzipSync(`{"user":"ann","at":"${at}","state":"online"}\n`)
  }
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content)
}

/** Waits until the service has what samples ask for: the first scrapes. */
async function untilFilled(apiUrl: string): Promise<void> {
  for (const path of await referencePaths(apiUrl)) {
    await until(async () => !(await textOf(apiUrl + path)).includes('names below are inventions'), LOOK_MS)
  }
}

/** Returns the HTML of all pages to which `/docs` leads, guides and operations, read one after the other. */
async function readReference(apiUrl: string): Promise<string> {
  let html = ''
  for (const path of await referencePaths(apiUrl)) html += await textOf(apiUrl + path)
  return html
}

async function referencePaths(apiUrl: string): Promise<ReadonlySet<string>> {
  return new Set([...(await textOf(`${apiUrl}/docs`)).matchAll(/href="(\/docs\/[^"]+)"/g)].map(([, path = '']) => path))
}

async function textOf(url: string): Promise<string> {
  return await (await fetch(url)).text()
}

function pathOf(path: string): string {
  return fileURLToPath(new URL(path, ROOT))
}

async function shell(directory: string, environment: Readonly<Record<string, string>>, text: string): Promise<Ran> {
  return run('bash', ['--norc', '-c', SHELL + text], {
    cwd: directory,
    env: { PATH: process.env.PATH ?? '', ...environment }
  })
}

/** Runs a program to its end; its failure is a result. */
async function run(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv }
): Promise<Ran> {
  const done = promisify(execFile)(command, args, { maxBuffer: 2 ** 27, ...options })
  return done.then(
    (streams) => ({ code: 0, ...streams }),
    (error: { code?: number | string; stdout?: string; stderr?: string }) => ({
      code: error.code ?? 1,
      stdout: error.stdout ?? '',
      stderr: error.stderr ?? String(error)
    })
  )
}

const decoded = (html: string) =>
  html.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&')
