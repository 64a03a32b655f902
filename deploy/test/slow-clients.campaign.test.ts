import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { startGamenet } from './service/gamenet.js'

const SECONDS = Number(process.env.CAMPAIGN_SECONDS ?? 600)
const CONNECTIONS = 1000
/** Of good requests meanwhile, on a machine that does something else too. */
const ANSWER_MS_MAX = 2000

/** Debian's package `slowhttptest`: connections that send their headers, or their body, or read the answer, as slowly as is allowed. */
const ATTACKS = [
  { name: 'headers', args: ['-H', '-i', '2', '-x', '24'] },
  { name: 'body', args: ['-B', '-i', '2', '-s', '8192', '-x', '10'] },
  { name: 'reading', args: ['-X', '-w', '10', '-y', '20', '-n', '5', '-z', '32', '-k', '3'] }
]

test('clients that are as slow as they can be hold up no other', async (t) => {
  if (spawnSync('slowhttptest', ['-h']).error !== undefined) {
    t.fail('NO SLOWHTTPTEST: slow clients cannot be tried; apt-get install slowhttptest')
    return
  }
  const service = await startGamenet({ DATA_DIR: t.testdir() })
  t.teardown(() => service.kill())
  for (const { name, args } of ATTACKS) {
    const seconds = Math.ceil(SECONDS / ATTACKS.length)
    const how = [
      '-c',
      String(CONNECTIONS),
      '-r',
      '200',
      '-l',
      String(seconds),
      '-p',
      '3',
      '-u',
      `${service.apiUrl}/api/games`
    ]
    const attack = spawn('slowhttptest', [...args, ...how], { stdio: 'ignore' })
    t.teardown(() => attack.kill('SIGKILL'))
    const ended = once(attack, 'exit')
    let slowest = 0
    let answers = 0
    while (attack.exitCode === null && attack.signalCode === null) {
      const begun = performance.now()
      const { status } = await fetch(`${service.apiUrl}/api/games`, { headers: { connection: 'close' } })
      slowest = Math.max(slowest, performance.now() - begun)
      answers += 1
      if (status !== 200) t.fail(`${name}: a good request got ${status}`)
      await wait(50)
    }
    await ended
    t.ok(answers > seconds, `${name}: ${answers} good requests`)
    t.ok(slowest < ANSWER_MS_MAX, `${name}: the slowest answer took ${slowest.toFixed(0)} ms`)
    t.comment(
      `${CONNECTIONS} connections, slow ${name}, ${seconds} s: ${answers} good answers, slowest ${slowest.toFixed(0)} ms`
    )
  }
  t.equal(service.process.exitCode, null, 'the service lives')
})
