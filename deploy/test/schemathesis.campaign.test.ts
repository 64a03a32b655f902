import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { ROOT, startGamenet } from './service/gamenet.js'
import { signIn, startAuth } from './service/people-service.js'

/** From PyPI. */
const SCHEMATHESIS = 'schemathesis==4.32.5'
const SECONDS = Number(process.env.CAMPAIGN_SECONDS ?? 600)
const PYTHON = '/usr/bin/python3'
/** The expected refusals of valid requests. */
const HOOKS = fileURLToPath(new URL('deploy/test/schemathesis_hooks.py', ROOT))

const run = async (
  t: Test,
  command: string,
  args: readonly string[]
): Promise<{ code: number | null; output: string }> => {
  const child: ChildProcess = spawn(command, args, {
    cwd: process.env.CAMPAIGN_DIRECTORY ?? t.testdirName,
    env: { ...process.env, SCHEMATHESIS_HOOKS: HOOKS, PYTHONDONTWRITEBYTECODE: '1' },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  t.teardown(() => child.kill('SIGKILL'))
  const said: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text) => said.push(text))
  await once(child, 'close')
  const output = said.join('')
  if (command !== PYTHON && child.exitCode !== 0) t.comment(output.slice(-1000))
  return { code: child.exitCode, output }
}

/** What the service counted itself, so that no answer is missed. */
const answeredByStatus = async (operatorUrl: string): Promise<Map<string, number>> => {
  const metrics = await (await fetch(`${operatorUrl}/metrics`)).text()
  const answered = new Map<string, number>()
  for (const [, status = '', count] of metrics.matchAll(
    /^gamenet_http_request_duration_seconds_count\{.*status="(\d+)".*\} (\d+)$/gm
  ))
    answered.set(status, (answered.get(status) ?? 0) + Number(count))
  return answered
}

test('the service takes what /openapi.json allows, refuses what it forbids, and answers nothing with 5xx', async (t) => {
  if (!existsSync(PYTHON)) {
    t.fail(`NO PYTHON: ${PYTHON} is not there, so that Schemathesis cannot be run; install python3 and python3-venv`)
    return
  }
  const venv = join(process.env.CAMPAIGN_DIRECTORY ?? t.testdir(), 'venv')
  const schemathesis = join(venv, 'bin', 'schemathesis')
  const python = join(venv, 'bin', 'python')
  if (!existsSync(schemathesis)) {
    await run(t, PYTHON, ['-m', 'venv', venv])
    const installed = await run(t, python, ['-m', 'pip', 'install', '--quiet', SCHEMATHESIS])
    t.equal(installed.code, 0, installed.output)
  }
  const auth = await startAuth(t)
  const person = auth.people[0]
  if (person === undefined) throw new Error('the demo auth service has people')
  const { sessionKey } = await signIn(auth, person)
  const service = await startGamenet({ DATA_DIR: t.testdir(), AUTH_URL: auth.url })
  t.teardown(() => service.kill())
  const { code, output } = await run(t, python, [
    schemathesis,
    'run',
    `${service.apiUrl}/openapi.json`,
    ...['--checks', 'all', '--continue-on-failure', '--suppress-health-check', 'all', '--no-color'],
    // A stream does not end.
    ...['--exclude-path', '/api/stream'],
    ...['--max-time', String(SECONDS), '--seed', '1', '--header', `X-Session-Key: ${sessionKey}`]
  ])
  writeFileSync(join(venv, '..', 'schemathesis.txt'), output)
  t.equal(code, 0, output.slice(-4000))
  const answered = await answeredByStatus(service.operatorUrl)
  const total = [...answered.values()].reduce((sum, count) => sum + count, 0)
  t.ok(total > SECONDS, `${total} answers`)
  t.same(
    [...answered].filter(([status]) => status.startsWith('5')),
    []
  )
  t.ok(service.isAlive(), 'the service lives')
  t.comment(
    `${total} answers in ${SECONDS} s: ${[...answered].map(([status, count]) => `${status} ${count}`).join(', ')}`
  )
  t.comment(/^.*dropped by `filter_failure`.*$/m.exec(output)?.[0])
})
