import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openChdb } from '@gamenet/engines'
import { ALL_RIGHTS, listening } from '@gamenet/engines/testing'
import { migrate } from '@gamenet/projector'
import { test } from 'tap'
import { parse } from 'yaml'
import { z } from 'zod'
import { BOOKKEEPING } from '../src/stores/freeze.js'
import { deployFile } from './service/deployment-files.js'
import { type Environment, gamenet, gamenetJson, openGamenet, ROOT } from './service/gamenet.js'
import { samplesOf } from './service/page-samples.js'
import { startAuth } from './service/people-service.js'
import { startUpstream } from './service/upstream.js'

/*
 * This test runs every command of docs/operators against a small service, once each, in the order of the index. In a fence, the
 * text after ` # ` may contain `[exit 1]`, and `[cluster]` for a command that needs servers. To add a command: write it into a page;
 * prepare its input in NEEDS; if it cannot run here, give the reason in NOT_RUN. A fence with other lines has a mark: see the head of
 * page-samples.ts. To add an alert: a rule, and a chapter of its name in alerts.md.
 */

/** Input that a command needs in the directory in addition to a service. */
const NEEDS: readonly { readonly command: RegExp; make(directory: string): Promise<unknown> }[] = [
  {
    command: /npx gamenet backup /,
    make: (directory) => mkdir(join(directory, 'backups'))
  },
  {
    command: /npx gamenet restore .*--ledger/,
    make: (directory) => rm(join(directory, 'restored'), { recursive: true })
  },
  {
    command: / --key 4d530064\/1 /,
    async make(directory) {
      const environment = { DATA_DIR: join(directory, 'data') }
      await gamenetJson(environment, ['scrape', 'boards'])
      await gamenetJson(environment, ['status', '--wait'])
    }
  },
  {
    command: /^npx gamenet erase LuckyBadger$/,
    async make(directory) {
      const file = join(directory, 'presence.ndjson')
      await writeFile(file, '{"username":"LuckyBadger","state":"online","observedAt":"2020-01-01T00:00:00Z"}\n')
      await gamenetJson({ DATA_DIR: join(directory, 'data') }, ['import', 'presence', file, '--no-wait'])
    }
  }
]

const NOT_RUN: readonly { readonly command: RegExp; readonly reason: string }[] = [
  { command: /^npx gamenet (start|ingest|projector|api)\b/, reason: 'runs until it is stopped; other tests start it' },
  {
    command: /^npx gamenet dead-letters (show|retry|drop) \S+ \d/,
    reason: 'needs a dead letter at that position; the test of a service with dead letters runs it'
  },
  { command: /--watch/, reason: 'runs until it is stopped' },
  { command: /\[cluster\]/, reason: 'needs a service on servers' }
]

/** Paths of the pages, and their replacements in the test directory. */
const PATHS: readonly { readonly named: string; readonly here: string }[] = [
  { named: '/mnt/backups', here: 'backups' },
  { named: './restored', here: 'restored' },
  { named: './data', here: 'data' }
]

const halo = { titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 5, lobbies: null, hasBoards: true }

const ANN = { rank: 1, name: 'Ann', score: '9' }

/** How many fences of docs/operators have a mark. */
const MARKED = 10

/** Metrics of the pages and the rules that a service on embedded engines lacks. */
const OF_CLUSTERS: readonly string[] = [
  'gamenet_clickhouse_replicas',
  'gamenet_postgres_connections',
  'gamenet_postgres_deaf_listeners',
  'gamenet_spool_messages',
  'gamenet_spool_bytes',
  'gamenet_spool_bytes_max',
  'gamenet_spool_oldest_seconds',
  'gamenet_spooled_messages_total',
  'gamenet_spool_drained_messages_total',
  'gamenet_spool_refused_messages_total'
]

/** Users of ClickHouse that the pages name. */
const USERS: readonly string[] = ['gamenet_analyst', 'gamenet_questions']

const PAGES = new URL('docs/operators/', ROOT)
const page = (name: string) => readFile(new URL(`${name}.md`, PAGES), 'utf8')
const [index, alerts] = await Promise.all([page('index'), page('alerts')])
const pages = [...index.matchAll(/\]\(([a-z-]+)\.md\)/g)].map(([, name = '']) => name)
const operators = (await Promise.all(pages.map(page))).join('\n')
const Rules = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Gamenet[A-Z]\w+$/),
          expr: z.string(),
          for: z
            .string()
            .regex(/^\d+[mh]$/)
            .optional(),
          labels: z.strictObject({ severity: z.enum(['critical', 'warning']) }),
          annotations: z.strictObject({ summary: z.string(), runbook: z.string() })
        })
      )
    })
  )
})
const { groups } = Rules.parse(parse(await readFile(new URL('deploy/alerts/gamenet.rules.yml', ROOT), 'utf8')))
const rules = groups.flatMap((group) => group.rules)
const Cases = z.object({ tests: z.array(z.object({ input_series: z.array(z.object({ series: z.string() })) })) })
const { tests } = Cases.parse(parse(await readFile(new URL('deploy/alerts/gamenet.rules.test.yml', ROOT), 'utf8')))

test('the index lists every page', async (t) => {
  const files = (await readdir(PAGES)).map((file) => file.replace(/\.md$/, ''))
  t.same([...new Set(['index', ...pages])].sort(), files.sort())
})

test('every alert has its chapter in the runbook, and every chapter its alert', async (t) => {
  const chapters = [...alerts.matchAll(/^## ([^\n]*)\n(.*?)(?=^## |(?![\s\S]))/gms)]
  const names = rules.map(({ alert }) => alert)
  t.equal(new Set(names).size, names.length, 'each name once')
  t.same(chapters.map(([, name]) => name).sort(), [...names].sort())
  for (const [, name = '', chapter = ''] of chapters)
    t.match(chapter, /^```sh\n.*npx gamenet/m, `${name}: what to type`)
  for (const { alert, expr, annotations } of rules) {
    t.equal(annotations.runbook, `docs/operators/alerts.md#${alert.toLowerCase()}`)
    t.equal(expr.split('(').length, expr.split(')').length, `${alert}: brackets`)
  }
})

test('the commands of the runbook work, and the metrics of pages, alerts and dashboards exist', async (t) => {
  const directory = t.testdir()
  const [auth, upstream] = [await startAuth(t), await startUpstream()]
  t.teardown(() => upstream.close())
  upstream.show({ registered: 9, online: 5, titles: [halo] })
  upstream.showGame(halo.titleId, { lobbies: [], boards: [{ leaderboardId: 1, name: 'Laps', entries: [ANN] }] })
  const dataDirectory = join(directory, 'data')
  const service = await openGamenet(t, { DATA_DIR: dataDirectory, UPSTREAM_URL: upstream.url, AUTH_URL: auth.url })

  const exposed = await (await fetch(`${service.operatorUrl}/metrics`)).text()
  const existing = new Set([...exposed.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name))
  const asked = [
    ...operators.matchAll(/\bgamenet_\w+/g),
    ...rules.flatMap(({ expr }) => [...expr.matchAll(/\bgamenet_\w+/g)]),
    ...(await deployFile('grafana/gamenet.json')).matchAll(/\b(?:gamenet|nodejs|process)_\w+/g)
  ]
  const missing = new Set(asked.map(([name]) => name.replace(/_(count|sum|bucket)$/, '')))
  for (const name of [...existing, ...OF_CLUSTERS, ...USERS]) missing.delete(name ?? '')
  t.same([...missing], [], 'metrics that no service has')

  const marked = samplesOf('docs/operators', operators).filter(({ mark }) => mark !== undefined)
  t.equal(marked.length, MARKED, `fences that nothing runs: ${marked.map(({ mark }) => mark).join(', ')}`)
  for (const { environment, args, command, comment } of commandsOf(operators)) {
    const exception = NOT_RUN.find(({ command: pattern }) => pattern.test(`${command} ${comment}`))
    if (exception !== undefined) {
      t.comment(`${command}: not run here, it ${exception.reason}`)
      if (!comment.includes('[cluster]')) continue
      const { code, stderr } = await gamenet({ DATA_DIR: join(directory, 'missing') }, args)
      t.equal(code, 1, `without a service it is refused for that reason alone: ${command}\n${stderr}`)
      continue
    }
    for (const need of NEEDS) if (need.command.test(command)) await need.make(directory)
    const here = (text: string) =>
      PATHS.reduce((found, path) => found.replaceAll(path.named, join(directory, path.here)), text)
    const its = Object.entries(environment).map(([name, value]) => [name, here(value)])
    const done = await gamenet({ DATA_DIR: dataDirectory, ...Object.fromEntries(its) }, args.map(here))
    const wanted = Number(/\[exit (\d+)\]/.exec(comment)?.[1] ?? 0)
    t.equal(done.code, wanted, `${command}\n${done.stdout.slice(-500)}${done.stderr.slice(-500)}`)
  }
  await t.test('the series of the alert tests have the labels of the exposed metrics', async (t) => {
    await fetch(`${service.apiUrl}/api/games`)
    const lines = (await (await fetch(`${service.operatorUrl}/metrics`)).text()).split('\n')
    const known = new Set(lines.filter((line) => /^(gamenet|nodejs|process)_/.test(line)).map(labelled))
    const asked = tests.flatMap(({ input_series }) => input_series.map(({ series }) => labelled(series)))
    const own = asked.filter((series) => !['up', ...OF_CLUSTERS].includes(series.split(' ')[0] ?? ''))
    t.same(
      [...new Set(own)].filter((series) => !known.has(series)),
      []
    )
  })
})

/* backup-cluster.campaign.test.ts restores such a backup. */
test('the backup of servers copies bookkeeping before the tables that it describes; a failed copy lets ingest start again', async (t) => {
  const directory = t.testdir()
  const clickhouse = await openChdb({ path: join(directory, 'tables'), grants: ALL_RIGHTS })
  t.teardown(() => clickhouse.close())
  await migrate(clickhouse.control)
  const statements: string[] = []
  const moves = [7, 7, 7, 7, 7, 8]
  const url = await listening(t, async (request, response) => {
    const statement = await text(request)
    if (statement.startsWith('SELECT')) {
      response.end(String(moves.shift()))
      return
    }
    statements.push(statement)
    await clickhouse.control.execute(statement).then(
      () => response.end(),
      (error: unknown) => response.writeHead(500).end(String(error))
    )
  })
  const target = join(directory, 'monday')
  const environment = {
    PATH: process.env.PATH,
    CLICKHOUSE_URL: url,
    CLICKHOUSE_COPY: "Memory('%s')",
    POSTGRES_URL: 'postgres://ann:secret@127.0.0.1:9/gamenet',
    STOP_INGEST: `touch ${directory}/stopped`,
    START_INGEST: `touch ${directory}/started`,
    COPY_KAFKA: `touch ${directory}/copied`
  }
  const script = fileURLToPath(new URL('deploy/backup/backup.sh', ROOT))
  for (const _ of ['the first', 'another one, over what the first has left'])
    await t.rejects(promisify(execFile)(script, ['backup', target], { env: environment }), /pg_dump/)
  t.same((await readdir(directory)).sort(), ['monday.unfinished', 'started', 'stopped', 'tables'])
  const tablesOf = (statement = '') =>
    (/TABLES? (.*) TO /.exec(statement)?.[1] ?? '').split(/, /).map((name) => name.replace('TABLE ', ''))
  const [first, second, rest] = statements
  t.same([...tablesOf(first), ...tablesOf(second)], BOOKKEEPING)
  t.match(rest, /^BACKUP DATABASE `default` EXCEPT/)
  t.same(tablesOf(rest), BOOKKEEPING)

  const swapped = promisify(execFile)(script, ['backup', join(directory, 'tuesday')], { env: environment })
  await t.rejects(swapped, /moved a pointer during the copy. Repeat the backup/)
  t.notOk(
    (await readdir(directory)).some((name) => name.startsWith('tuesday')),
    'nothing is in the way of the next one'
  )
})

/** The name and the labels of a series, without the labels that Prometheus adds. */
function labelled(series: string): string {
  const names = [...series.matchAll(/(\w+)="/g)].map(([, label]) => label)
  const own = names.filter((label) => label !== 'job' && label !== 'instance').sort()
  return [/^\w+/.exec(series)?.[0], ...own].join(' ')
}

type TypedCommand = {
  readonly command: string
  readonly comment: string
  readonly environment: Environment
  readonly args: readonly string[]
}

/** The command lines in the fences of a page, once each, split at spaces. */
function commandsOf(page: string): TypedCommand[] {
  const run = samplesOf('docs/operators', page).filter(({ mark }) => mark === undefined)
  const lines = run.flatMap(({ text }) => text.trimEnd().split('\n'))
  const commands = lines.map((line): TypedCommand => {
    const parts = /^((?:\w+=\S+ +)*)npx gamenet\b(.*?)(?:\s+# (.*))?$/.exec(line)
    if (parts === null) throw new Error(`Expected a command of gamenet; mark the fence of this line: ${line}`)
    const [, assignments = '', args = '', comment = ''] = parts
    if (/['"$|&<>]/.test(args)) throw new Error(`This command needs a shell: ${line}`)
    const environment = Object.fromEntries(words(assignments).map((each) => each.split('=')))
    return { command: `${assignments}npx gamenet${args}`, comment, environment, args: words(args) }
  })
  return [...new Map(commands.map((each) => [each.command, each])).values()]
}

const words = (text: string) => text.split(/\s+/).filter((word) => word !== '')
