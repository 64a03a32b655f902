import { readFile } from 'node:fs/promises'
import { parse, parseAllDocuments } from 'yaml'
import { z } from 'zod'
import { ROOT } from './gamenet.js'

/** A process that a file of deploy/ starts. */
export type DeployedProcess = {
  readonly where: string
  readonly command: string
  readonly environment: Readonly<Record<string, string>>
  readonly probes: readonly { readonly path: string; readonly port: number | undefined }[]
  readonly ports: Readonly<Record<string, number>>
}

const Probe = z.object({ httpGet: z.object({ path: z.string(), port: z.string() }) })
const Container = z.object({
  args: z.tuple([z.string()]),
  env: z.array(z.object({ name: z.string(), value: z.string() })).default([]),
  ports: z.array(z.object({ name: z.string(), containerPort: z.int() })).default([]),
  startupProbe: Probe.optional(),
  livenessProbe: Probe.optional(),
  readinessProbe: Probe.optional()
})
const Workload = z.object({
  kind: z.string(),
  metadata: z.object({ name: z.string() }),
  spec: z.object({ template: z.object({ spec: z.object({ containers: z.tuple([Container]) }) }) })
})
const Compose = z.object({
  services: z.record(
    z.string(),
    z.object({
      image: z.string(),
      command: z.tuple([z.string()]).optional(),
      environment: z.record(z.string(), z.string()).default({})
    })
  )
})

export const deployFile = (path: string): Promise<string> => readFile(new URL(`deploy/${path}`, ROOT), 'utf8')

/** All processes of the service that the files of deploy/ start. */
export async function deployedProcesses(): Promise<DeployedProcess[]> {
  return [...(await ofCompose()), ...(await ofKubernetes()), await ofSystemd(), ...(await ofExample())]
}

/** The environment that the image gives to every container. */
async function imageEnvironment(): Promise<Record<string, string>> {
  return assignments(/^ENV (.*)$/m.exec(await deployFile('container/Dockerfile'))?.[1] ?? '')
}

async function ofCompose(): Promise<DeployedProcess[]> {
  const image = await imageEnvironment()
  const { services } = Compose.parse(parse(await deployFile('container/compose.yaml'), { merge: true }))
  return Object.entries(services)
    .filter(([, service]) => service.image === 'gamenet-stats')
    .map(([name, { command: [command] = ['start'], environment }]) => ({
      where: `compose ${name}`,
      command,
      // `${NAME:-default}`, as in a folder without .env.
      environment: { ...image, ...mapValues(environment, (value) => value.replace(/\$\{\w+:-([^}]*)\}/g, '$1')) },
      probes: [],
      ports: {}
    }))
}

async function ofKubernetes(): Promise<DeployedProcess[]> {
  const image = await imageEnvironment()
  const Kustomization = z.object({
    resources: z.array(z.string()),
    configMapGenerator: z.tuple([z.object({ literals: z.array(z.string()) })])
  })
  const { resources, configMapGenerator } = Kustomization.parse(
    parse(await deployFile('kubernetes/kustomization.yaml'))
  )
  const shared = assignments(configMapGenerator[0].literals.join(' '))
  const texts = await Promise.all(resources.map((file) => deployFile(`kubernetes/${file}`)))
  const workloads = texts
    .flatMap((text) => parseAllDocuments(text).map((document) => Workload.safeParse(document.toJS()).data))
    .filter((workload) => workload !== undefined)
  return workloads.map(({ kind, metadata, spec }) => {
    const [{ args, env, ports, ...probes }] = spec.template.spec.containers
    const byName = Object.fromEntries(ports.map(({ name, containerPort }) => [name, containerPort]))
    return {
      where: `${kind} ${metadata.name}`,
      command: args[0],
      environment: { ...image, ...shared, ...Object.fromEntries(env.map(({ name, value }) => [name, value])) },
      probes: Object.values(probes)
        .filter((probe) => probe !== undefined)
        .map(({ httpGet: { path, port } }) => ({ path, port: byName[port] })),
      ports: byName
    }
  })
}

async function ofSystemd(): Promise<DeployedProcess> {
  const unit = await deployFile('systemd/gamenet.service')
  return {
    where: 'systemd',
    command: /^ExecStart=\S+ deploy\/gamenet\.cjs (\w+)$/m.exec(unit)?.[1] ?? '',
    environment: assignments(/^Environment=(.*)$/m.exec(unit)?.[1] ?? ''),
    probes: [],
    ports: {}
  }
}

/** The roles of the worked example; files of /etc/gamenet and credentials are in /secrets here. */
async function ofExample(): Promise<DeployedProcess[]> {
  const [unit, shared] = await Promise.all(
    ['gamenet@.service', 'cluster.env'].map((name) => deployFile(`example/${name}`))
  )
  const ofUnit = assignments(/^Environment=(.*)$/m.exec(unit ?? '')?.[1] ?? '')
  return await Promise.all(
    ['ingest', 'projector', 'api'].map(async (command) => {
      const own = assignments(await deployFile(`example/${command}.env`))
      const here = (value: string) => value.replace('%i', command).replace(/^(%d|\/etc\/gamenet)\//, '/secrets/')
      const environment = mapValues({ ...ofUnit, ...assignments(shared ?? ''), ...own }, here)
      return { where: `example ${command}`, command, environment, probes: [], ports: {} }
    })
  )
}

function assignments(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/(\w+)=(\S*)/g)].map(([, name = '', value = '']) => [name, value]))
}

function mapValues(
  record: Readonly<Record<string, string>>,
  change: (value: string) => string
): Record<string, string> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]))
}
