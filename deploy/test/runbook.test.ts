import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openChdb } from '@gamenet/engines'
import { migrate } from '@gamenet/projector'
import { test } from 'tap'
import { parse } from 'yaml'
import { z } from 'zod'
import { BOOKKEEPING } from '../src/backup/freeze.js'
import { type Environment, gamenet, gamenetJson, ROOT, startGamenet } from './service/gamenet.js'
import { startAuth } from './service/people-service.js'
import { startUpstream } from './service/upstream.js'

/*
 * docs/operators.md is typed in bad hours, so that every command in it is run here against a small service, in the order
 * of the page, each once. In a fence, what stands behind ` # ` may say `[exit 1]`, and `[cluster]` where servers are
 * needed. To add a command: write it there; where it needs something, make that in NEEDS; where it cannot be run, say
 * why in NOT_RUN. To add an alarm: a rule, and a chapter of its name under "Alarms".
 */

/** What must be there in the directory before a command is run, besides a service. */
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
    command: /^npx gamenet forget LuckyBadger$/,
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
    command: /^npx gamenet parked (show|retry|drop) \S+ \d/,
    reason: 'is about a dead letter at that position; the test of a service with dead letters runs it'
  },
  { command: /\[cluster\]/, reason: 'needs a service on servers' }
]

/** Paths that the page names, and where they lie here. */
const PATHS: readonly { readonly named: string; readonly here: string }[] = [
  { named: '/mnt/backups', here: 'backups' },
  { named: './restored', here: 'restored' },
  { named: './data', here: 'data' }
]

const halo = { titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 5, lobbies: null, hasBoards: true }

/** Metrics of the page and the rules that a service on embedded engines does not have. */
const OF_CLUSTERS: readonly string[] = [
  'gamenet_spool_messages',
  'gamenet_spool_bytes',
  'gamenet_spool_bytes_max',
  'gamenet_spool_oldest_seconds',
  'gamenet_spooled_messages_total',
  'gamenet_spool_drained_messages_total',
  'gamenet_spool_refused_messages_total'
]

const operators = await readFile(new URL('docs/operators.md', ROOT), 'utf8')
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

test('every alert has its chapter in the runbook, and every chapter its alert', async (t) => {
  const alarms = /^## Alarms\n(.*?)^## /ms.exec(operators)?.[1] ?? ''
  const chapters = [...alarms.matchAll(/^### ([^\n]*)\n(.*?)(?=^### |(?![\s\S]))/gms)]
  const names = rules.map(({ alert }) => alert)
  t.equal(new Set(names).size, names.length, 'each name once')
  t.same(chapters.map(([, name]) => name).sort(), [...names].sort())
  for (const [, name = '', chapter = ''] of chapters) t.match(chapter, /^```\n.*npx gamenet/m, `${name}: what to type`)
  for (const { alert, expr, annotations } of rules) {
    t.equal(annotations.runbook, `docs/operators.md#${alert.toLowerCase()}`)
    t.equal(expr.split('(').length, expr.split(')').length, `${alert}: brackets`)
  }
})

test('what the runbook says to type works, and what alerts ask for is there', async (t) => {
  const directory = t.testdir()
  const [auth, upstream] = [await startAuth(t), await startUpstream()]
  t.teardown(() => upstream.close())
  upstream.show({ registered: 9, online: 5, titles: [halo] })
  upstream.showGame(halo.titleId, { lobbies: [], boards: [{ leaderboardId: 1, name: 'Laps', entries: [] }] })
  const dataDirectory = join(directory, 'data')
  const service = await startGamenet({ DATA_DIR: dataDirectory, UPSTREAM_URL: upstream.url, AUTH_URL: auth.url })
  t.teardown(() => service.kill())

  const exposed = await (await fetch(`${service.operatorUrl}/metrics`)).text()
  const known = new Set([...exposed.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name))
  const asked = [
    ...operators.matchAll(/\bgamenet_\w+/g),
    ...rules.flatMap(({ expr }) => [...expr.matchAll(/\bgamenet_\w+/g)])
  ]
  const missing = new Set(asked.map(([name]) => name.replace(/_(count|sum|bucket)$/, '')))
  for (const name of [...known, ...OF_CLUSTERS]) missing.delete(name ?? '')
  t.same([...missing], [], 'metrics that no service has')

  for (const { environment, args, command, comment } of commandsOf(operators)) {
    const excused = NOT_RUN.find((exception) => exception.command.test(`${command} ${comment}`))
    if (excused !== undefined) {
      t.comment(`${command}: not run here, it ${excused.reason}`)
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
  await t.test('what alerts are tested with has the labels of what is exposed', async (t) => {
    await fetch(`${service.apiUrl}/api/games`)
    const lines = (await (await fetch(`${service.operatorUrl}/metrics`)).text()).split('\n')
    const known = new Set(lines.filter((line) => /^gamenet_/.test(line)).map(labelled))
    const asked = tests.flatMap(({ input_series }) => input_series.map(({ series }) => labelled(series)))
    const own = asked.filter((series) => !['up', ...OF_CLUSTERS].includes(series))
    t.same(
      [...new Set(own)].filter((series) => !known.has(series)),
      []
    )
  })
  // The directory is removed before what is torn down.
  await service.kill()
})

test('the statements that back ClickHouse up name all bookkeeping before what it tells of, and ClickHouse takes them', async (t) => {
  const fence = /^ *```sql\n( *BACKUP .*?)^ *```$/ms.exec(operators)?.[1] ?? ''
  const statements = fence
    .trim()
    .split(/;\s*/)
    .filter((statement) => statement !== '')
  const tablesOf = (text = '') => text.split(/, /).map((name) => name.replace('TABLE ', ''))
  const [first, second, rest] = statements.map((text) => /(?:TABLES?) (.*) TO …$/.exec(text)?.[1])
  t.same([...tablesOf(first), ...tablesOf(second)], BOOKKEEPING)
  t.same(tablesOf(rest), BOOKKEEPING)
  const clickhouse = await openChdb({ path: t.testdir() })
  t.teardown(() => clickhouse.close())
  await migrate(clickhouse.control)
  for (const [at, text] of statements.entries()) await clickhouse.control.execute(text.replace('…', `Memory('${at}')`))
})

/** Name and labels of a series, but for those that Prometheus adds. */
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

/** The lines of the page's fences that call the program, each once; they are split at spaces. */
function commandsOf(page: string): TypedCommand[] {
  const lines = [...page.matchAll(/^```\w*\n(.*?)^```$/gms)].flatMap(([, fence = '']) => fence.split('\n'))
  const commands = lines.flatMap((line): TypedCommand[] => {
    const parts = /^((?:\w+=\S+ +)*)npx gamenet\b(.*?)(?:\s+# (.*))?$/.exec(line)
    if (parts === null) return []
    const [, assignments = '', args = '', comment = ''] = parts
    if (/['"$|&<>]/.test(args)) throw new Error(`a shell would be needed: ${line}`)
    const environment = Object.fromEntries(words(assignments).map((each) => each.split('=')))
    return [{ command: `${assignments}npx gamenet${args}`, comment, environment, args: words(args) }]
  })
  return [...new Map(commands.map((each) => [each.command, each])).values()]
}

const words = (text: string) => text.split(/\s+/).filter((word) => word !== '')
