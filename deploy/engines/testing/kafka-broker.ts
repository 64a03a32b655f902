import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { access, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Admin } from 'kafkajs'
import { kafkaClient } from '../src/log/kafka-client.js'
import { freePort } from './free-port.js'

const run = promisify(execFile)
const START_MS = 240_000
const FETCH_JARS_MS = 240_000
const OUTPUT_CHARACTERS_MAX = 20_000
/**
 * A broker of a test runs for seconds: the optimizing compiler and the concurrent collector took half of its processor
 * time.
 */
const JVM = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC']

/** Apache Kafka, one node, on loopback. */
export type KafkaBroker = {
  /** `host:port`, for `brokers`. */
  readonly address: string
  /** A listener with TLS and passwords, if requested. */
  readonly secured: SecuredListener | undefined
  /** A listener whose clients are redirected to port `through`, where a test may listen, if requested. */
  readonly proxied: { readonly address: string; readonly through: number } | undefined
  /** Kills it with SIGKILL, as a crash of the machine would. */
  kill(): Promise<void>
  /** Stops or continues the process. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Starts it again on the same port and data. */
  restart(): Promise<void>
  /** Deletes the records of a partition before an offset, as retention does. */
  deleteRecords(topic: string, before: { readonly partition: number; readonly offset: number }): Promise<void>
  /** The ids of the members of a consumer group; a process that joins again has another one. Empty during a rebalance. */
  members(group: string): Promise<readonly string[]>
  /** Stops it and deletes its data, unless a directory was given. */
  stop(): Promise<void>
}

export type SecuredListener = {
  readonly address: string
  /** Its own certificate, PEM. */
  readonly caFile: string
  /** For the mechanisms `plain` and `scram-sha-512`. `oauthbearer` accepts unsigned tokens. */
  readonly username: string
  readonly password: string
}

/**
 * Returns why Kafka cannot be started here; undefined if it can. Downloads missing jars, so that no test waits for a
 * download within its time limit.
 */
export async function kafkaBrokerMissing(): Promise<string | undefined> {
  const missing: string[] = []
  const needed = (await isThere(jarsFolder(await pomText()))) ? ['java'] : ['java', 'mvn']
  for (const tool of needed) await run(tool, ['-version']).catch(() => missing.push(tool))
  if (missing.length > 0) return `a real Kafka cannot be started without ${missing.join(' and ')}`
  return await kafkaJars().then(
    () => undefined,
    (error: Error) => `the jars of a real Kafka cannot be fetched: ${error.message}`
  )
}

/**
 * Starts a broker with new data and free ports, or with those of an earlier directory. The first start on a machine
 * downloads 54 MB of jars.
 */
export async function startKafkaBroker(
  options: {
    readonly directory?: string
    readonly secured?: boolean
    readonly proxied?: boolean
    /** Misses a heartbeat every 2 s, so that its partitions have no leader for half a second. */
    readonly fenced?: boolean
    /** For measurements of speed: compiles as a broker of an installation does. */
    readonly measured?: boolean
  } = {}
): Promise<KafkaBroker> {
  const jars = await kafkaJars()
  const directory = options.directory ?? (await mkdtemp(join(tmpdir(), 'gamenet-kafka-')))
  const config = join(directory, 'server.properties')
  const secured = options.secured === true ? await securedListener(directory) : undefined
  const proxied =
    options.proxied === true ? { address: `127.0.0.1:${await freePort()}`, through: await freePort() } : undefined
  const classPath = join(jars, '*')
  const isFenced = options.fenced === true
  const port = (await portOf(config)) ?? (await format({ directory, config, classPath, secured, proxied, isFenced }))
  const javaOptions = options.measured === true ? [] : JVM
  let child = await startServer(javaOptions, classPath, config)
  const killAtExit = (): void => {
    child.kill('SIGKILL')
  }
  process.once('exit', killAtExit)
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.ref()
    child.kill('SIGKILL')
    await exited
  }
  return {
    address: `127.0.0.1:${port}`,
    secured,
    proxied,
    kill,
    signal: (signal) => void child.kill(signal),
    async restart() {
      await kill()
      child = await startServer(javaOptions, classPath, config)
    },
    deleteRecords: deleteRecords(`127.0.0.1:${port}`),
    members: (group) =>
      withAdmin(`127.0.0.1:${port}`, async (admin) => {
        const [found] = (await admin.describeGroups([group])).groups
        return found?.state === 'Stable' ? found.members.map(({ memberId }) => memberId).sort() : []
      }),
    async stop() {
      process.removeListener('exit', killAtExit)
      await kill()
      if (options.directory === undefined) await rm(directory, { recursive: true, force: true })
    }
  }
}

/** Returns the function that deletes records on a broker. */
export const deleteRecords =
  (address: string): KafkaBroker['deleteRecords'] =>
  (topic, { partition, offset }) =>
    withAdmin(address, async (admin) => {
      await admin.fetchTopicOffsets(topic)
      await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] })
    })

async function withAdmin<Result>(address: string, use: (admin: Admin) => Promise<Result>): Promise<Result> {
  const admin = kafkaClient({ brokers: [address], clientId: 'test' }).admin()
  await admin.connect()
  try {
    return await use(admin)
  } finally {
    await admin.disconnect()
  }
}

/** Returns the port of a broker whose directory exists. */
async function portOf(config: string): Promise<number | undefined> {
  const text = await readFile(config, 'utf8').catch(() => '')
  const port = /^listeners=PLAINTEXT:\/\/127\.0\.0\.1:(\d+),/m.exec(text)?.[1]
  return port === undefined ? undefined : Number(port)
}

type Unformatted = Pick<KafkaBroker, 'secured' | 'proxied'> & {
  readonly directory: string
  readonly config: string
  readonly classPath: string
  readonly isFenced: boolean
}

/** Creates the directory of a broker and returns its port. */
async function format({ directory, config, classPath, secured, proxied, isFenced }: Unformatted): Promise<number> {
  const [port, controllerPort] = await Promise.all([freePort(), freePort()])
  await mkdir(directory, { recursive: true })
  await writeFile(config, properties({ directory, port, controllerPort, secured, proxied, isFenced }))
  const clusterId = Buffer.from(randomUUID().replaceAll('-', ''), 'hex').toString('base64url')
  const scram = secured === undefined ? [] : ['--add-scram', `SCRAM-SHA-512=[name=${USERNAME},password=${PASSWORD}]`]
  // One id of 64 begins with -, which would be parsed as an option.
  const command = ['kafka.tools.StorageTool', 'format', `--cluster-id=${clusterId}`, '-c', config, ...scram]
  await run('java', [...JVM, '-cp', classPath, ...command])
  return port
}

const POM = join(import.meta.dirname, '../../testing/kafka/pom.xml')
const JARS_CACHE = join(import.meta.dirname, '../../../../node_modules/.cache/gamenet-kafka')

const pomText = (): Promise<string> => readFile(POM, 'utf8')

/** A folder per version of the list of jars. */
const jarsFolder = (pom: string): string =>
  join(JARS_CACHE, createHash('sha256').update(pom).digest('hex').slice(0, 12))

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false
  )

/** Returns the folder with Kafka's jars, created once and shared by all tests of this checkout. */
async function kafkaJars(): Promise<string> {
  const jars = jarsFolder(await pomText())
  if (await isThere(jars)) return jars
  await mkdir(JARS_CACHE, { recursive: true })
  const making = await mkdtemp(join(JARS_CACHE, 'making-'))
  const goal = ['-q', '-B', '-f', POM, 'dependency:copy-dependencies', `-DoutputDirectory=${making}`]
  try {
    await run('mvn', goal, { cwd: dirname(POM), timeout: FETCH_JARS_MS })
    await rename(making, jars)
  } catch (error) {
    await rm(making, { recursive: true, force: true })
    // Another test may have been faster; its folder is equal.
    if (!(await isThere(jars))) throw error
  }
  return jars
}

const USERNAME = 'gamenet'
const PASSWORD = 'a-password-of-tests'

async function securedListener(directory: string): Promise<SecuredListener> {
  const caFile = join(directory, 'broker.pem')
  const store = ['-keystore', keyStore(directory), '-storetype', 'PKCS12', '-storepass', PASSWORD, '-alias', 'broker']
  const name = ['-dname', 'CN=127.0.0.1', '-ext', 'san=ip:127.0.0.1']
  await run('keytool', ['-genkeypair', '-keyalg', 'EC', '-validity', '3650', ...name, ...store])
  await run('keytool', ['-exportcert', '-rfc', '-file', caFile, ...store])
  return { address: `127.0.0.1:${await freePort()}`, caFile, username: USERNAME, password: PASSWORD }
}

function keyStore(directory: string): string {
  return join(directory, 'broker.p12')
}

type Listeners = Pick<KafkaBroker, 'secured' | 'proxied'> & {
  readonly directory: string
  readonly port: number
  readonly controllerPort: number
  readonly isFenced: boolean
}

const FENCED = `broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=2000
`

function properties({ directory, port, controllerPort, secured, proxied, isFenced }: Listeners): string {
  const listeners = [`PLAINTEXT://127.0.0.1:${port}`]
  const advertised = [...listeners]
  if (secured !== undefined) {
    listeners.push(`SECURED://${secured.address}`)
    advertised.push(`SECURED://${secured.address}`)
  }
  if (proxied !== undefined) {
    listeners.push(`PROXIED://${proxied.address}`)
    advertised.push(`PROXIED://127.0.0.1:${proxied.through}`)
  }
  return `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${controllerPort}
listeners=${listeners.join()},CONTROLLER://127.0.0.1:${controllerPort}
advertised.listeners=${advertised.join()}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,SECURED:SASL_SSL
controller.listener.names=CONTROLLER
log.dirs=${join(directory, 'data')}
auto.create.topics.enable=false
compression.type=lz4
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=0
${isFenced ? FENCED : ''}${secured === undefined ? '' : securedProperties(directory)}`
}

function securedProperties(directory: string): string {
  const login = 'org.apache.kafka.common.security'
  return `ssl.keystore.location=${keyStore(directory)}
ssl.keystore.type=PKCS12
ssl.keystore.password=${PASSWORD}
ssl.key.password=${PASSWORD}
listener.name.secured.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512,OAUTHBEARER
listener.name.secured.plain.sasl.jaas.config=${login}.plain.PlainLoginModule required user_${USERNAME}="${PASSWORD}";
listener.name.secured.scram-sha-512.sasl.jaas.config=${login}.scram.ScramLoginModule required;
listener.name.secured.oauthbearer.sasl.jaas.config=${login}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";
`
}

async function startServer(javaOptions: readonly string[], classPath: string, config: string): Promise<ChildProcess> {
  const args = [...javaOptions, '-Xmx768m', '-cp', classPath, 'kafka.Kafka', config]
  const child = spawn('java', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string): void => {
      child.kill('SIGKILL')
      reject(new Error(`Kafka did not start: ${why}\n${output}`))
    }
    const timer = setTimeout(() => fail(`not up after ${START_MS} ms`), START_MS)
    const read = (chunk: Buffer): void => {
      output = (output + chunk.toString('utf8')).slice(-OUTPUT_CHARACTERS_MAX)
      if (!/Kafka Server started/.test(output)) return
      clearTimeout(timer)
      resolve()
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('error', (error) => fail(error.message))
    child.once('exit', (code) => {
      clearTimeout(timer)
      fail(`it ended with ${code}`)
    })
  })
  // Neither the broker nor its output keeps the tests' process alive; it ends with them.
  child.unref()
  for (const stream of [child.stdout, child.stderr]) (stream as unknown as Socket).unref()
  return child
}
