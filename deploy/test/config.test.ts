import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { fastify } from 'fastify'
import { test } from 'tap'
import { parseAllDocuments } from 'yaml'
import { readConfig, SECRETS, UsageError, VARIABLES } from '../src/config.js'
import { exposureOf, requireOperatorToken } from '../src/operator/exposure.js'
import { listen } from '../src/run/listen.js'
import { type Role, requireServers } from '../src/stores/component.js'
import { openTables } from '../src/stores/engines.js'
import { loaderGroup } from '../src/stores/log.js'
import { readLogChoice } from '../src/stores/log-choice.js'
import { refuseUnsuitable } from '../src/stores/suitable-tables.js'
import { deployedProcesses, deployFile } from './service/deployment-files.js'
import { gamenet, ROOT } from './service/gamenet.js'

test('public addresses contain no credentials, query or fragment', (t) => {
  for (const name of ['AUTH_URL', 'PUBLIC_URL'] as const) {
    t.equal(readConfig({ [name]: 'https://example.org/base/' })[name], 'https://example.org/base')
    for (const address of ['http://ann:secret@example.org', 'http://example.org/?a=1', 'http://example.org/#a']) {
      t.throws(() => readConfig({ [name]: address }), { message: new RegExp(`${name} is .*expected .*without`) })
    }
  }
  t.end()
})

test('the refusal of a wrong configuration contains no password', (t) => {
  const wrong = {
    AUTH_URL: 'http://ann:secret@example.org',
    UPSTREAM_URL: 'ftp://ann:secret@example.org',
    POSTGRES_URL: 'mysql://ann:secret@example.org',
    CHAT_API_TOKEN: 'secret of two lines\n'
  }
  try {
    readConfig(wrong)
    t.fail('it is wrong')
  } catch (error) {
    t.type(error, UsageError)
    for (const name of Object.keys(wrong)) t.match(String(error), name)
    t.notMatch(String(error), 'secret')
  }
  t.end()
})

test('every refused value is refused with what was expected', (t) => {
  const free = ['HOST', 'OPERATOR_HOST', 'METRICS_HOST', 'DATA_DIR', 'QUESTIONS_DIR'].concat(
    ['USERNAME', 'PASSWORD', 'SCOPE'].map((name) => `KAFKA_SASL_${name}`)
  )
  for (const name of VARIABLES) {
    if (free.includes(name)) t.ok(readConfig({ [name]: '☹ ' }), name)
    else t.throws(() => readConfig({ [name]: '☹ ' }), new RegExp(`wrong\\. ${name} is .*\\bexpected `))
  }
  t.end()
})

test('configured limits of queries reach the engine, and missing ones have defaults', async (t) => {
  const limitsOf = async (variables: Record<string, string>) => {
    const tables = await openTables(readConfig(variables), join(t.testdir({}), 'tables'), {})
    t.teardown(() => tables.close())
    const sql = "SELECT getSetting('max_threads') AS threads, getSetting('max_memory_usage') AS memory"
    await tables.readers.rows(sql)
    const answers = Promise.all([1, 2, 3].map(() => tables.readers.rows(sql)))
    await setImmediate()
    const { waiting } = tables.stats().lanes.readers
    const [[limits] = []] = await answers
    await tables.close()
    return { ...limits, waiting }
  }
  const limits = { CLICKHOUSE_READER_THREADS: '1', CLICKHOUSE_READER_MEMORY_BYTES: '33554432' }
  t.same(await limitsOf({ ...limits, CLICKHOUSE_READERS: '1' }), { threads: 1, memory: 33_554_432, waiting: 2 })
  t.same(await limitsOf({}), { threads: 2, memory: 536_870_912, waiting: 0 })
})

test('a host that is not an address of this machine is named with its variable', async (t) => {
  await t.rejects(listen(fastify(), '192.0.2.1', 0, 'METRICS_PORT'), {
    message: /^192\.0\.2\.1 is not an address of this machine \(EADDRNOTAVAIL\); set METRICS_HOST to one/
  })
})

test('writes have no limit unless one is configured, and every limit permits some writes', (t) => {
  t.equal(readConfig({}).WRITES_PER_MINUTE, undefined)
  t.equal(readConfig({ WRITES_PER_MINUTE: '30' }).WRITES_PER_MINUTE, 30)
  t.throws(() => readConfig({ WRITES_PER_MINUTE: '0' }), /WRITES_PER_MINUTE is "0": expected at least 1/)
  t.end()
})

test('topics of Kafka have the configured settings, which override the retention in days', (t) => {
  const choiceOf = (variables: Record<string, string>) =>
    readLogChoice(readConfig({ KAFKA_BROKERS: 'kafka:9092', ...variables }), 'unused')
  const KAFKA_TOPIC_CONFIG = 'cleanup.policy=compact,min.insync.replicas=2'
  t.same(choiceOf({ KAFKA_TOPIC_CONFIG, LOG_RETENTION_DAYS: '2' }), {
    ...choiceOf({}),
    topicConfig: { 'cleanup.policy': 'compact', 'min.insync.replicas': '2', 'retention.ms': '172800000' }
  })
  t.match(choiceOf({ KAFKA_TOPIC_CONFIG: 'retention.ms=5', LOG_RETENTION_DAYS: '2' }), {
    topicConfig: { 'retention.ms': '5' }
  })
  t.throws(() => readConfig({ KAFKA_TOPIC_CONFIG: 'compact' }), /KAFKA_TOPIC_CONFIG.*expected name=value/)
  t.throws(() => readConfig({ KAFKA_SSL: 'maybe' }), /KAFKA_SSL is "maybe": expected true or false/)
  t.end()
})

test('every secret can be in a file, and an invalid file is named without its content', (t) => {
  const folder = t.testdir({
    token: 'a-token-of-operators\r\n',
    empty: '\n',
    wrong: 'mysql://ann:word-of-ann@example.org\n',
    'ca.pem': '-----BEGIN CERTIFICATE-----'
  })
  const found = readConfig({ OPERATOR_TOKEN_FILE: `${folder}/token`, CLICKHOUSE_SSL_CA_FILE: `${folder}/ca.pem` })
  t.equal(found.OPERATOR_TOKEN, 'a-token-of-operators')
  t.match(found.CLICKHOUSE_SSL_CA_FILE, /^-----BEGIN/)
  for (const name of SECRETS) t.ok(VARIABLES.includes(`${name}_FILE`))
  try {
    readConfig({
      OPERATOR_TOKEN: 'short',
      CHAT_API_TOKEN: 'a',
      CHAT_API_TOKEN_FILE: `${folder}/token`,
      KAFKA_SASL_PASSWORD_FILE: `${folder}/nothing`,
      CLICKHOUSE_URL_FILE: `${folder}/empty`,
      POSTGRES_URL_FILE: `${folder}/wrong`,
      POSTGRES_LISTEN_URL: `postgres://ann:word-of-ann@example.org/a?sslmode=verify-full&sslrootcert=${encodeURIComponent(folder)}/nothing`,
      KAFKA_SSL_CA_FILE: folder,
      CLICKHOUSE_SSL_CA_FILE: `${folder}/token`
    })
    t.fail('it is wrong')
  } catch (error) {
    for (const sentence of [
      'CHAT_API_TOKEN and CHAT_API_TOKEN_FILE are both set: expected one of them',
      `KAFKA_SASL_PASSWORD_FILE is "${folder}/nothing": it cannot be read (ENOENT), expected a file that this user may read`,
      `CLICKHOUSE_URL_FILE is "${folder}/empty": the file is empty`,
      'OPERATOR_TOKEN is not shown: expected at least 16',
      'POSTGRES_URL is not shown: expected a postgres:// address',
      `POSTGRES_LISTEN_URL is not shown: sslrootcert is "${folder}/nothing": it cannot be read (ENOENT)`,
      `KAFKA_SSL_CA_FILE is "${folder}": it cannot be read (EISDIR)`,
      `CLICKHOUSE_SSL_CA_FILE is "${folder}/token": expected a file in PEM`
    ])
      t.match(String(error), sentence)
    t.notMatch(String(error), 'word-of-ann')
  }
  t.end()
})

test('an operator port that other machines can reach needs a token, and the start prints what is open to them', (t) => {
  const open = readConfig({ HOST: '0.0.0.0', OPERATOR_HOST: '::', METRICS_HOST: '10.1.2.3', METRICS_PORT: '9090' })
  t.throws(() => requireOperatorToken(open, 'api'), /OPERATOR_HOST is "::".*set OPERATOR_TOKEN/)
  requireOperatorToken(open, 'all')
  requireOperatorToken({ ...open, OPERATOR_TOKEN: 'a-token-of-operators' }, 'api')
  requireOperatorToken(readConfig({}), 'api')
  t.match(exposureOf(open, 'api'), [
    /^HOST=0\.0\.0\.0: .* port 8080 can read the public API/,
    /^OPERATOR_HOST=::: .* port 8081 .* with the operator token/,
    /^METRICS_HOST=10\.1\.2\.3: .* port 9090 can read metrics\.$/
  ])
  t.equal(exposureOf(open, 'ingest').length, 2, 'it has no public port')
  t.same(exposureOf(readConfig({ OPERATOR_HOST: 'localhost', METRICS_HOST: '127.0.0.9' }), 'all'), [])
  for (const wrong of ['10.0.0.1/33', 'proxy', ''])
    t.throws(() => readConfig({ TRUSTED_PROXIES: `10.0.0.1,${wrong}` }), /TRUSTED_PROXIES is .*expected addresses/)
  t.end()
})

test('installations on one Kafka have their own consumer groups, and the brokers decide on replication', (t) => {
  t.equal(loaderGroup('gamenet.'), 'gamenet.loaders')
  t.equal(loaderGroup('staging.gamenet.'), 'staging.gamenet.loaders')
  t.not(loaderGroup('gamenet-'), loaderGroup('gamenet.'))
  const replication = (variables: Record<string, string>) =>
    readLogChoice(readConfig({ KAFKA_BROKERS: 'kafka:9092', ...variables }), 'unused')
  t.match(replication({}), { replicationFactor: -1 })
  t.match(replication({ KAFKA_REPLICATION: '3' }), { replicationFactor: 3 })
  t.end()
})

test('a ClickHouse that is too old, or whose replicas would differ, is refused with the reason', async (t) => {
  const warnings: string[] = []
  const fault = async (found: Record<string, unknown>, addresses = 1) => {
    const rows = async () => [{ engine: 'Replicated', version: '24.8.4.13', shards: '1', replicas: '3', ...found }]
    return await refuseUnsuitable({ rows }, { addresses, warn: (sentence) => void warnings.push(sentence) }).then(
      () => undefined,
      ({ message }) => message
    )
  }
  const plain = { engine: 'Atomic', plain: '62' }
  t.equal(await fault(plain), undefined)
  t.equal(await fault({ ...plain, version: '26.1.1.1' }), undefined)
  t.match(await fault({ version: '24.3.2.1' }), /is ClickHouse 24\.3\.2\.1, and this program needs 24\.8 or newer/)
  t.equal(await fault({ replicated: '62' }, 3), undefined, 'three replicas')
  t.equal(await fault({ engine: 'Shared' }, 1), undefined, 'ClickHouse Cloud')
  t.equal(await fault({ plain: '62', replicas: '1' }), undefined, 'a replica alone')
  t.match(await fault({ plain: '3' }), /engine Replicated, and tables \(3\) whose engines do not replicate/)
  t.match(await fault({ shards: '2' }), /with 2 shards, each with a part of the rows/)
  t.match(await fault({ engine: 'Atomic', replicated: '61' }), /Atomic, and tables \(61\) whose engines replicate each/)
  t.match(await fault(plain, 2), /engine Atomic, and CLICKHOUSE_URL lists 2 addresses, each with rows of its own/)
  t.same(warnings, [])
  t.equal(await fault({ replicas: '2' }, 2), undefined)
  t.match(warnings, [/has 2 replicas: while one is away, nothing is loaded/])
})

test('CLICKHOUSE_URL lists addresses, each with its credentials', (t) => {
  const given = 'http://a:1@one:8123/stats, https://b:2@two:8443/stats'
  t.same(readConfig({ CLICKHOUSE_URL: given }).CLICKHOUSE_URL, given.split(', '))
  t.throws(() => readConfig({ CLICKHOUSE_URL: 'http://one:8123,two' }), /CLICKHOUSE_URL is not shown: expected an http/)
  t.end()
})

test('every variable is documented, and which role reads it', async (t) => {
  const roles = await readFile(new URL('docs/operators/roles.md', ROOT), 'utf8')
  const table = [...roles.matchAll(/`([A-Z_]+)(\*?)`/g)].map(
    ([, name = '', rest]) => new RegExp(`^${name}${rest === '' ? '$' : ''}`)
  )
  const unread = VARIABLES.filter((name) => !name.endsWith('_URL_FILE') && !table.some((pattern) => pattern.test(name)))
  t.same(unread, [])
  const page = await readFile(new URL('docs/configuration.md', ROOT), 'utf8')
  const missing = VARIABLES.filter((name) => !page.includes(`\`${name}\``))
  t.same(
    missing,
    SECRETS.map((name) => `${name}_FILE`),
    'but the files of secrets, which follow one rule'
  )
})

const OF_GLIBC = 'MALLOC_ARENA_MAX'

test('the files of deploy/ start commands that exist, with a valid environment, and probe the ports that it opens', async (t) => {
  const secrets = t.testdir({
    'operator-token': 'a-token-of-operators',
    'clickhouse-url': 'http://clickhouse.example:8123/gamenet',
    'postgres-url': 'postgres://postgres.example/gamenet',
    'kafka-password': 'a-password',
    'ca.pem': '-----BEGIN CERTIFICATE-----'
  })
  const processes = await deployedProcesses()
  t.same([...new Set(processes.map(({ command }) => command))].sort(), [
    'api',
    'ingest',
    'migrate',
    'projector',
    'start'
  ])
  for (const { where, command, environment, probes, ports } of processes) {
    t.same(
      Object.keys(environment).filter((name) => !VARIABLES.includes(name) && name !== OF_GLIBC),
      ['NODE_ENV'],
      `${where}: variables that exist`
    )
    t.match(await gamenet({}, ['help', command]), { code: 0 }, `${where}: a command that exists`)
    const here = Object.entries(environment).map(([name, value]) => [name, value.replace('/secrets', secrets)])
    // The files name no token: an operator chooses it.
    const config = { OPERATOR_TOKEN: 'a-token-of-operators', ...readConfig(Object.fromEntries(here)) }
    const role = command === 'start' ? 'all' : command === 'migrate' ? 'offline' : (command as Role)
    requireServers(config, role)
    requireOperatorToken(config, role)
    t.ok(config.METRICS_PORT, `${where}: a port of metrics`)
    for (const { path, port } of probes) {
      t.ok(['/healthz', '/readyz'].includes(path), `${where}: ${path}`)
      t.equal(port, config.METRICS_PORT, `${where}: the probes ask the port of metrics`)
    }
    if (ports.http !== undefined) t.equal(ports.http, config.PORT)
  }
  const [image] = processes
  const [{ PORT, METRICS_PORT, DATA_DIR }, dockerfile] = [
    image?.environment ?? {},
    await deployFile('container/Dockerfile')
  ]
  t.match(dockerfile, new RegExp(`^EXPOSE ${PORT} ${METRICS_PORT}\nVOLUME ${DATA_DIR}$`, 'm'))
  t.match(dockerfile, `http://127.0.0.1:${METRICS_PORT}/healthz`)
  t.match(await deployFile('container/nginx.conf'), `http://api:${PORT};`)
  t.match(await deployFile('container/prometheus.yml'), `job_name: gamenet\n`)
  t.match(await deployFile('container/prometheus.yml'), `port: ${METRICS_PORT},`)
  t.match(await deployFile('kubernetes/network-policy.yaml'), /podSelector: .* app: gamenet \}/)
})

test('files of proxies, clusters and units have limits', async (t) => {
  for (const name of ['example/nginx.conf', 'container/nginx.conf']) {
    const text = await deployFile(name)
    for (const limit of [
      'limit_conn ',
      'limit_req ',
      'client_header_timeout ',
      'client_body_timeout ',
      'send_timeout '
    ])
      t.match(text, `\n  ${limit}`, name)
    const buffer = Number(/large_client_header_buffers \d+ (\d+)k;/.exec(text)?.[1]) * 1024
    t.ok(buffer >= 16_384 + 256, `${name}: the longest request line fits into one buffer`)
    const [, stream = ''] = text.split('location ~ ^/api/stream {')
    t.match(stream, /^[^}]*proxy_buffering off;[^}]*proxy_read_timeout 1h;/, name)
    t.match(text, /error_page 429 @limited;[^}]*Retry-After[^}]*return 429 '\{"error":"[^"]+"\}';/, name)
  }
  for (const name of ['compose', 'replicas'])
    for (const [, ports = ''] of (await deployFile(`container/${name}.yaml`)).matchAll(/ ports: \["([^"]*)"/g))
      t.match(ports, /^127\.0\.0\.1:/, 'published on loopback')
  for (const name of ['api', 'ingest', 'projector', 'migrate']) {
    const text = await deployFile(`kubernetes/${name}.yaml`)
    t.match(text, 'automountServiceAccountToken: false', name)
    t.same(
      [...text.matchAll(/emptyDir: (?!\{ sizeLimit: \d+[GM]i \})/g)],
      [],
      `${name}: the size of every folder is limited`
    )
  }
  const policy = parseAllDocuments(await deployFile('kubernetes/network-policy.yaml')).map((each) => each.toJS())
  const [all] = policy
  t.same(all.spec.policyTypes, ['Ingress', 'Egress'])
  t.ok(all.spec.ingress[0].from, 'metrics are not for everybody')
  for (const { to } of policy.flatMap(({ spec }) => spec.egress ?? [])) t.ok(to)
  const units = await Promise.all(['systemd/gamenet.service', 'example/gamenet@.service'].map(deployFile))
  for (const unit of units) {
    for (const line of ['ProtectProc=invisible', 'SystemCallFilter=@system-service', 'MemoryMax=', 'TasksMax='])
      t.match(unit, `\n${line}`)
    t.notMatch(unit, /^MemoryDenyWriteExecute=/m, 'Node compiles code')
  }
})

test('the files of the example name the same ports, addresses and disks', async (t) => {
  const file = (name: string) => deployFile(`example/${name}`)
  const roles = (await deployedProcesses()).filter(({ where }) => where.startsWith('example'))
  const portsOf = (name: string) => roles.map(({ environment }) => environment[name])
  const ports = ['PORT', 'OPERATOR_PORT', 'METRICS_PORT'].flatMap(portsOf).filter((port) => port !== undefined)
  t.equal(new Set(ports).size, 7, 'the three processes of a machine have different ports')
  const targets = [...(await file('prometheus.yml')).matchAll(/service-[12]\.internal\.example:(\d+)/g)]
  t.same(
    targets.map(([, port]) => port),
    [...portsOf('METRICS_PORT'), ...portsOf('METRICS_PORT')]
  )
  const api = roles.find(({ command }) => command === 'api')?.environment ?? {}
  t.match(await file('nginx.conf'), `proxy_pass http://${api.HOST}:${api.PORT};`)
  const [kafka, page, script] = [
    await file('kafka.properties'),
    await readFile(new URL('docs/operators/example.md', ROOT), 'utf8'),
    await deployFile('backup/backup.sh')
  ]
  t.match(kafka, `advertised.listeners=CLIENTS://${api.KAFKA_BROKERS}\n`)
  t.match(kafka, `sasl.enabled.mechanisms=${api.KAFKA_SASL_MECHANISM?.toUpperCase()}\n`)
  const clickhouse = await file('clickhouse.xml')
  const httpsPort = /<https_port>(\d+)</.exec(clickhouse)?.[1]
  t.match(page, `@engines.internal.example:${httpsPort}/gamenet`)
  t.match(script, `Default: Disk('${/<allowed_disk>(\w+)</.exec(clickhouse)?.[1]}', '%s')`)
  for (const name of await readdir(new URL('deploy/example/', ROOT)))
    t.match(page, `(../../deploy/example/${name})`, 'every file is in the page')
})
