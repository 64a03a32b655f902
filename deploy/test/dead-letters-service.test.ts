import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import {
  encodeEvent,
  instantOf,
  type LogMessage,
  leaderboardEntryTopic,
  networkCountTopic,
  titleCountTopic
} from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { type LogChoice, type OpenLog, openLog } from '../src/stores/log.js'
import { type Environment, gamenet, gamenetJson, type Opened, openGamenet, plainWrites } from './service/gamenet.js'
import { runOlderProgram } from './service/older-program.js'

const T0 = Date.UTC(2025, 0, 1, 12)
const QUIET: Environment = {
  UPSTREAM_URL: 'http://127.0.0.1:9',
  SCRAPE_NETWORK_SECONDS: '0',
  SCRAPE_GAMES_SECONDS: '0'
}
const DAY = 'from=2025-01-01T00:00:00Z&to=2025-01-02T00:00:00Z'
const QUESTIONS = [
  `/api/title/4d530064/online-users/history?${DAY}`,
  `/api/network-stats/top-games?${DAY}`,
  `/api/network-stats/online-24h?${DAY}`,
  '/api/game/4d530064/leaderboards/7',
  '/api/game/4d530064/leaderboards/7/records',
  '/api/leaderboard-changes?after=start',
  '/api/player/ann',
  '/api/datasearch/time?time=1:10.000'
]

/** Messages: an older program can read some, this one all except the last two counts. */
async function appendAll(log: OpenLog): Promise<void> {
  const provenance = { source: '/test' }
  const at = (minute: number) => instantOf(T0 + minute * 60_000)
  const counted = (online: number, minute: number) =>
    encodeEvent(titleCountTopic, { titleId: '4d530064', observedAt: at(minute), online }, provenance)
  const entered = (playerName: string, timeMs: number, minute: number) => {
    const board = { titleId: '4d530064', leaderboardId: 7, changeType: 'new', rating: String(timeMs) } as const
    return encodeEvent(leaderboardEntryTopic, { ...board, playerName, timeMs, changedAt: at(minute) }, provenance)
  }
  const spoilt: LogMessage = { ...counted(6, 6), value: '{"titleId": \u001b[31m' }
  const newer = counted(7, 7)
  const unknown = { ...newer, headers: { ...newer.headers, ce_type: 'gamenet.title-count.v9' } }
  await log.append('title-count', [counted(5, 0), counted(500, 1), counted(9, 2), counted(700, 3), spoilt, unknown])
  await log.append('title-count', [counted(11, 8)])
  await log.append('leaderboard-entry', [
    entered('Ann', 70_000, 1),
    entered('Bob', 50_000, 2),
    entered('Ann', 40_000, 3)
  ])
  await log.append('network-count', [encodeEvent(networkCountTopic, { observedAt: at(9), online: 12 }, provenance)])
}

async function answersOf({ apiUrl }: Opened): Promise<unknown[]> {
  const answers: unknown[] = []
  for (const path of QUESTIONS) {
    const response = await fetch(`${apiUrl}${path}`)
    answers.push([path, response.status, await response.json()])
  }
  return answers
}

/** Answers of a service that never had a dead letter. */
async function answersOfPlain(t: Test, folder: string): Promise<unknown[]> {
  const reference = await openGamenet(t, { ...QUIET, ...(await plainWrites(t)), DATA_DIR: folder })
  await gamenetJson({ OPERATOR_URL: reference.operatorUrl }, ['status', '--wait', '120'])
  const answers = await answersOf(reference)
  await reference.stop()
  return answers
}

/** Dead letters of an older program are retried by this one; its answers then equal those of a service that never had them. */
async function provesRetry(
  t: Test,
  own: Environment,
  expected: readonly unknown[],
  afterwards: (reach: Environment) => Promise<void>
): Promise<void> {
  const service = await openGamenet(t, own)
  const reach = { OPERATOR_URL: service.operatorUrl }
  t.match(await gamenetJson(reach, ['status', '--wait', '120']), {
    wait: { caughtUp: true },
    deadLetters: { 'title-count': 4, 'leaderboard-entry': 1 }
  })
  t.strictNotSame(await answersOf(service), expected)
  t.match(await gamenetJson(reach, ['dead-letters', 'list', '--topic', 'leaderboard-entry']), {
    total: 1,
    messages: [{ topic: 'leaderboard-entry', state: 'stored', reason: 'the event: longer than a run can take' }]
  })
  for (const topic of ['title-count', 'leaderboard-entry']) {
    const retried = await gamenet(reach, ['dead-letters', 'retry', '--topic', topic, '--all'])
    const [code, line] =
      topic === 'title-count' ? [1, /^2 are valid now .*, 2 are still invalid\.$/m] : [0, /^1 are valid now/]
    t.match(retried, { code, stdout: line })
    if (code === 0) {
      t.match(await gamenet(reach, ['dead-letters', 'retry', '--topic', topic, '--all']), {
        code: 0,
        stdout: 'None of these is a dead letter.\n'
      })
    }
    if (code === 1) t.match(retried.stdout, /version 9 of title-count is newer than this program, which reads up to 1/)
  }
  t.strictSame(await answersOf(service), expected)
  t.match(await (await fetch(`${service.operatorUrl}/metrics`)).text(), /dead_letters\{topic="title-count"\} 2/)
  await afterwards(reach)
  await service.stop()
}

test('an operator inspects dead letters of an older program, retries them, and drops the rest', async (t) => {
  const folder = t.testdir({ own: {}, plain: {} })
  const [own, plain] = [join(folder, 'own'), join(folder, 'plain')]
  const choice: LogChoice = { engine: 'lmdb', path: join(own, 'log'), epoch: 1 }
  const log = await openLog(choice, 'test')
  await appendAll(log)
  await runOlderProgram(log, join(own, 'tables'))
  await log.close()
  await cp(join(own, 'log'), join(plain, 'log'), { recursive: true })
  const expected = await answersOfPlain(t, plain)
  const environment = { ...QUIET, ...(await plainWrites(t)), DATA_DIR: own }
  await provesRetry(t, environment, expected, async (reach) => {
    const { stdout: list } = await gamenet(reach, ['dead-letters', 'list'])
    const place = (reason: string) => new RegExp(`^title-count +(\\S+) .*${reason}`, 'm').exec(list)?.[1] ?? ''
    const shown = await gamenet(reach, ['dead-letters', 'show', 'title-count', place('not JSON')])
    t.match(shown, { code: 0, stdout: /^reason: the message is not JSON/m })
    t.match(shown.stdout, /^ +ce_type +gamenet\.title-count\.v1$/m)
    t.match(
      shown.stdout,
      /^00000000 {2}7b 22 74 69 .* 1b 5b 33 31 {2}\{"titleId": \.\[31$/m,
      'what could steer a terminal is dumped'
    )
    t.notMatch(shown.stdout + list, '\u001b')
    for (const [args, code, sentence] of [
      [['show', 'title-count', '1/0/999'], 1, /There is no dead letter at title-count 1\/0\/999/],
      [['show', 'title-count', '7'], 2, /A position is epoch\/partition\/offset.*"7"/],
      [['drop', 'titles', '1/0/0'], 2, /There is no topic "titles"; there are /],
      [['retry', '--all'], 2, /Give either a topic/],
      [['list', '--limit', '0'], 2, /--limit takes .*"0"/]
    ] as const) {
      const done = await gamenet(reach, ['dead-letters', ...args])
      t.equal(done.code, code, args.join(' '))
      t.match(done.stderr, sentence)
    }
    for (const stdout of ['1 dropped.\n', '0 dropped.\n']) {
      t.match(await gamenet(reach, ['dead-letters', 'drop', 'title-count', place('not JSON')]), { code: 0, stdout })
    }
    t.match(await gamenetJson(reach, ['dead-letters', 'drop', '--topic', 'title-count', '--all']), { dropped: 1 })
    t.match(await gamenet(reach, ['dead-letters', 'list']), { stdout: 'There are no dead letters.\n' })
  })
  const dropped = await gamenetJson(environment, ['dead-letters', 'list', '--dropped'])
  t.match(dropped, { total: 2 }, 'on a service that is stopped, too, and by the older name of the command')
})
