import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { parse } from 'yaml'
import { z } from 'zod'
import { ROOT } from './service/gamenet.js'

const run = promisify(execFile)
const ALERTS = new URL('deploy/alerts/', ROOT)
/** Reached only by a hang: promtool needs some seconds for all cases. */
const WAIT_MS = 300_000
/** By default the garbage collector of Go, on both processors, takes a third of promtool's processor time. */
const GO = { GOMAXPROCS: '1', GOGC: '400' }

const missing = await run('promtool', ['--version']).then(
  () => undefined,
  () => 'promtool is not installed (it is in the Debian package prometheus; .ci/run takes it out of there)'
)
if (missing !== undefined) console.error(`NOT TESTED: whether alerts fire; ${missing}.`)
const skip = missing !== undefined && process.env.CI !== 'true' ? missing : false

const Rules = z.object({
  groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string(), expr: z.string() })) }))
})
const Cases = z.object({
  tests: z.array(
    z.object({
      input_series: z.array(z.object({ series: z.string() })),
      alert_rule_test: z.array(z.object({ alertname: z.string(), exp_alerts: z.array(z.unknown()) }))
    })
  )
})

test('Prometheus accepts the rules', { skip }, async (t) => {
  t.match(await promtool('check', 'rules', 'gamenet.rules.yml'), /SUCCESS: \d+ rules found/)
})

test('every alert fires when it should, with its labels and its sentence, and not when it should not', {
  skip
}, async (t) => {
  t.match(await promtool('test', 'rules', 'gamenet.rules.test.yml'), /SUCCESS/)
})

test('every alert has a case in which it fires, and one of its own metrics in which it does not', async (t) => {
  const { groups } = Rules.parse(await read('gamenet.rules.yml'))
  const { tests } = Cases.parse(await read('gamenet.rules.test.yml'))
  const rules = groups.flatMap((group) => group.rules)
  const cases = tests.flatMap(({ input_series, alert_rule_test }) => {
    const metrics = input_series.map(({ series }) => /^\w+/.exec(series)?.[0])
    const names = [...new Set(alert_rule_test.map(({ alertname }) => alertname))]
    return names.map((name) => {
      const asked = alert_rule_test.filter(({ alertname }) => alertname === name)
      return { name, metrics, fires: asked.some(({ exp_alerts }) => exp_alerts.length > 0) }
    })
  })
  for (const { alert, expr } of rules) {
    const own = cases.filter(
      ({ name, metrics }) => name === alert && metrics.some((metric) => new RegExp(`\\b${metric}\\b`).test(expr))
    )
    t.ok(
      own.some(({ fires }) => fires),
      `${alert} fires`
    )
    t.ok(
      own.some(({ fires }) => !fires),
      `${alert} does not fire`
    )
  }
  const known = new Set(rules.map(({ alert }) => alert))
  t.same(
    [...new Set(cases.map(({ name }) => name))].filter((name) => !known.has(name)),
    [],
    'cases of no alert'
  )
})

async function read(file: string): Promise<unknown> {
  return parse(await readFile(new URL(file, ALERTS), 'utf8'))
}

/** Returns its output on both streams; rejects if the exit code is not 0. */
async function promtool(...args: readonly string[]): Promise<string> {
  if (missing !== undefined) throw new Error(missing)
  const { stdout, stderr } = await run('promtool', args, {
    cwd: fileURLToPath(ALERTS),
    env: { ...process.env, ...GO },
    timeout: WAIT_MS
  })
  return `${stdout}${stderr}`
}
