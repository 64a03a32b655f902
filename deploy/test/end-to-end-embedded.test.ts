import { test } from 'tap'
import { provesTheWholeWay } from './service/end-to-end.js'
import { gamenet, gamenetJson, startGamenet } from './service/gamenet.js'
import { startUpstream } from './service/upstream.js'

test('one process on embedded engines brings pages and files to answers', async (t) => {
  const directory = t.testdir()
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const environment = {
    DATA_DIR: `${directory}/data`,
    UPSTREAM_URL: upstream.url,
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0'
  }
  const service = await startGamenet(environment)
  t.teardown(() => service.kill())
  const apiUrl = service.apiUrl ?? ''
  await provesTheWholeWay(t, { upstream, apiUrl, operatorUrl: service.operatorUrl, directory })
  const before = await (await fetch(`${apiUrl}/api/online-users`)).text()

  t.equal(await service.stop(), 0, 'SIGTERM ends it with 0')
  t.match(
    await gamenetJson(environment, ['status', '--wait']),
    { settled: { settled: true } },
    'a stopped service answers status'
  )
  const again = await startGamenet(environment)
  t.teardown(() => again.kill())
  t.equal(await (await fetch(`${again.apiUrl}/api/online-users`)).text(), before, 'a restart changes no answer')

  const second = await gamenet({ ...environment, PORT: '0', OPERATOR_PORT: '0' }, ['start'])
  t.equal(second.code, 1)
  t.match(second.stderr, /^The data directory .* is in use by process \d+; .*\n$/)
  await again.kill()
  const afterKill = await startGamenet(environment)
  t.teardown(() => afterKill.kill())
  t.equal(await (await fetch(`${afterKill.apiUrl}/api/online-users`)).text(), before, 'a SIGKILL loses nothing')
})

test('a wrong start is one sentence and an exit code', async (t) => {
  const directory = t.testdir({ file: 'not a folder' })
  const cases: [Record<string, string>, string[], number, RegExp][] = [
    [{ PORT: 'eighty' }, ['start'], 2, /PORT is "eighty"/],
    [
      { SCRAPE_NETWORK_SECONDS: '-1', UPSTREAM_URL: 'ftp://x' },
      ['start'],
      2,
      /UPSTREAM_URL is .*SCRAPE_NETWORK_SECONDS is "-1"/
    ],
    [{ DATA_DIR: `${directory}/file` }, ['start'], 1, /cannot be written/],
    [{}, ['begin'], 2, /unknown command/],
    [{ DATA_DIR: `${directory}/none` }, ['status'], 1, /There is no service and no data/],
    [{}, ['import', 'title-count', `${directory}/none.csv`], 2, /There is no file/],
    [{}, ['api'], 2, /CLICKHOUSE_URL/]
  ]
  for (const [environment, args, code, sentence] of cases) {
    const done = await gamenet(environment, args)
    t.equal(done.code, code, args.join(' '))
    t.match(done.stderr, sentence)
    t.notMatch(done.stderr, /\n\s+at /, 'no stack')
  }
})
