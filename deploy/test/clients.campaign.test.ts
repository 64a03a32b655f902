import { execFile } from 'node:child_process'
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { z } from 'zod'
import { gamenetJson, ROOT, startGamenet } from './service/gamenet.js'
import { startUpstream } from './service/upstream.js'

/** From npm, into the campaign's directory. */
const TOOLS = [
  '@arethetypeswrong/cli@0.18.5',
  '@redocly/cli@2.77.0',
  '@stoplight/spectral-cli@6.16.3',
  'esbuild@0.28.2',
  'openapi-fetch@0.17.0',
  'openapi-typescript@7.13.0',
  'publint@0.3.25',
  'typescript@5.9.3'
]
/** From PyPI. */
const PYTHON_TOOLS = ['openapi-python-client==0.29.1', 'ruff==0.14.6']
/** Versions of openapi-generator, from Maven: the first one generates Go. */
const GENERATORS = ['7.17.0', '7.24.0'] as const

const root = fileURLToPath(ROOT)
/** Without tap's loader, which NODE_OPTIONS adds to every process: it keeps tsc from starting. */
const run = (
  command: string,
  args: readonly string[],
  { cwd, env = process.env }: { cwd: string; env?: NodeJS.ProcessEnv }
) => promisify(execFile)('env', ['-u', 'NODE_OPTIONS', command, ...args], { cwd, env, maxBuffer: 2 ** 24 })
const NPM_INSTALL = ['install', '--no-audit', '--no-fund', '--ignore-scripts']

/** The requests of every generated client: an operation and the values of its path. */
const CALLS: readonly (readonly [operationId: string, ...inPath: string[]])[] = [
  ['getRegisteredUsers'],
  ['getOnlineHistory'],
  ['getLobbyHistory'],
  ['getActivitySummary'],
  ['getDailyOnline'],
  ['getTopGames'],
  ['getOnlineUsers'],
  ['getGames'],
  ['getGame', 'Halo 2'],
  ['getTitleOnlineHistory', '4d530064'],
  ['getAchievements'],
  ['getReadiness']
]

test('linters find nothing, and generated clients of three languages compile and run', async (t) => {
  const folder = process.env.CAMPAIGN_DIRECTORY ?? t.testdir()
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  await run('npm', [...NPM_INSTALL, ...TOOLS], { cwd: folder })
  await copyFile(join(root, 'docs/openapi.json'), join(folder, 'openapi.json'))
  const operations = operationsOf(await readFile(join(folder, 'openapi.json'), 'utf8'))
  const calls = CALLS.map(([operationId, ...inPath]): Call => {
    const operation = operations.get(operationId)
    if (operation === undefined) throw new Error(`docs/openapi.json has no operation ${operationId}.`)
    return { operationId, inPath, ...operation }
  })
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const halo = { titleId: '4d530064', name: 'Halo 2', subtitle: '', online: 41, lobbies: { players: 16, sessions: 3 } }
  upstream.show({ registered: 21_345, online: 87, titles: [halo] })
  const service = await startGamenet({ DATA_DIR: t.testdir(), UPSTREAM_URL: upstream.url })
  t.teardown(() => service.kill())
  await gamenetJson({ OPERATOR_URL: service.operatorUrl }, ['scrape', 'all'])
  await gamenetJson({ OPERATOR_URL: service.operatorUrl }, ['status', '--wait', '180'])
  const baseUrl = z.string().parse(service.apiUrl)
  const answered = calls.map(({ operationId }) => operationId).join('\n')

  await t.test('the description of the API', (t) => lintDescription(t, folder))
  await t.test('the packed SDK', (t) => lintPackage(t, folder))
  await t.test('TypeScript', async (t) => t.equal(await askInTypeScript(folder, baseUrl, calls), answered))
  await t.test('Python', async (t) => t.equal(await askInPython(folder, baseUrl, calls), answered))
  for (const version of GENERATORS) {
    await t.test(`Python by openapi-generator ${version}`, async (t) =>
      t.equal(await askInGeneratedPython(folder, baseUrl, calls, version), `${answered}\n${WINDOWED.join('\n')}`)
    )
  }
  await t.test('Go', async (t) => t.equal(await askInGo(folder, baseUrl, calls), answered))
})

type Operation = { readonly path: string; readonly tag: string; readonly parameter: string | undefined }
type Call = Operation & { readonly operationId: string; readonly inPath: readonly string[] }

function operationsOf(document: string): Map<string, Operation> {
  const paths = z.record(
    z.string(),
    z.record(z.string(), z.object({ operationId: z.string(), tags: z.array(z.string()) }))
  )
  return new Map(
    Object.entries(z.object({ paths }).parse(JSON.parse(document)).paths).flatMap(([path, methods]) =>
      Object.values(methods).map(({ operationId, tags: [tag = ''] }) => [
        operationId,
        { path, tag, parameter: /\{(\w+)\}/.exec(path)?.[1] }
      ])
    )
  )
}

async function lintDescription(t: Test, folder: string): Promise<void> {
  await writeFile(join(folder, '.spectral.yaml'), 'extends: ["spectral:oas"]\n')
  const found = await passes(t, folder, 'redocly', ['lint', '--extends=recommended', '--format=json', 'openapi.json'])
  t.same(JSON.parse(found).problems, [], 'neither errors nor warnings')
  await passes(t, folder, 'spectral', ['lint', '--fail-severity=hint', 'openapi.json'])
}

async function lintPackage(t: Test, folder: string): Promise<void> {
  await run('npm', ['pack', '--pack-destination', folder], { cwd: join(root, 'sdk') })
  const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? ''
  await passes(t, folder, 'publint', ['run', tarball, '--strict'])
  await passes(t, folder, 'attw', [tarball])
  await run('npm', [...NPM_INSTALL, '--no-save', `./${tarball}`, ...TOOLS], { cwd: folder })
  await writeFile(join(folder, 'page.js'), "import { GamenetError } from '@gamenet/sdk'\nconsole.log(GamenetError)\n")
  const bundled = await passes(t, folder, 'esbuild', ['page.js', '--bundle', '--minify'])
  t.ok(bundled.length < 1000, `a page that uses the error alone gets ${bundled.length} characters`)
}

/** Returns the output of a tool; the exit code must be 0. */
async function passes(t: Test, folder: string, tool: string, args: readonly string[]): Promise<string> {
  const ended = run(join(folder, 'node_modules/.bin', tool), args, { cwd: folder })
  const { code, stdout } = await ended.then(
    ({ stdout }) => ({ code: 0, stdout }),
    (error: { code: number; stdout: string }) => error
  )
  t.equal(code, 0, `${tool}: ${code === 0 ? 'nothing found' : stdout.slice(-3000)}`)
  return stdout
}

/** Each client prints the operations that answered with their own type, a line each. */
async function askInTypeScript(folder: string, baseUrl: string, calls: readonly Call[]): Promise<string> {
  const bin = join(folder, 'node_modules/.bin')
  await run(join(bin, 'openapi-typescript'), ['openapi.json', '-o', 'api.d.ts'], { cwd: folder })
  const lines = calls.map(({ operationId, path, parameter, inPath: [value] }) => {
    const params = parameter === undefined ? '' : `, { params: { path: { ${parameter}: ${JSON.stringify(value)} } } }`
    return `if ((await client.GET('${path}'${params})).data !== undefined) console.log('${operationId}')\n`
  })
  const client = `import createClient from 'openapi-fetch'\nimport type { paths } from './api.js'
const client = createClient<paths>({ baseUrl: '${baseUrl}' })\n${lines.join('')}export {}\n`
  await writeFile(join(folder, 'client.ts'), client)
  const lib = ['es2022', 'dom', 'dom.iterable']
  const compilerOptions = { strict: true, module: 'nodenext', target: 'es2022', lib, types: [] }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['client.ts'] }))
  await run(join(bin, 'tsc'), [], { cwd: folder })
  return (await run(process.execPath, ['client.js'], { cwd: folder })).stdout.trim()
}

async function askInPython(folder: string, baseUrl: string, calls: readonly Call[]): Promise<string> {
  const bin = join(folder, 'venv/bin')
  await run('python3', ['-m', 'venv', 'venv'], { cwd: folder })
  await run(join(bin, 'pip'), ['install', '--quiet', ...PYTHON_TOOLS], { cwd: folder })
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
  const generate = ['generate', '--path', 'openapi.json', '--output-path', 'python', '--overwrite', '--fail-on-warning']
  await run(join(bin, 'openapi-python-client'), generate, { cwd: folder, env })
  const lines = calls.map(({ operationId, tag, inPath }) => {
    const name = operationId.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    const given = inPath.map((value) => `${JSON.stringify(value)}, `).join('')
    return `from gamenet_stats_client.api.${tag.toLowerCase()} import ${name}
answer = ${name}.sync(${given}client=client)
if answer is not None and type(answer).__name__ != 'Error': print('${operationId}')\n`
  })
  const client = `from gamenet_stats_client import Client\nclient = Client('${baseUrl}')\n${lines.join('')}`
  await writeFile(join(folder, 'python/main.py'), client)
  return (await run(join(bin, 'python'), ['main.py'], { cwd: join(folder, 'python') })).stdout.trim()
}

/** Operations that are asked with a window, from and to as the texts of datetimes in Python. */
const WINDOWED = ['getOnlineHistory', 'getTopGames', 'getCoverage']

async function askInGeneratedPython(folder: string, baseUrl: string, calls: readonly Call[], version: string) {
  const generator = await generatorOf(folder, version)
  const home = join(folder, `python-${version}`)
  const skipped = 'apiTests=false,modelTests=false,apiDocs=false,modelDocs=false'
  const generate = ['generate', '-g', 'python', '-i', 'openapi.json', '-o', home, '--package-name', 'stats']
  await run('java', ['-jar', generator, ...generate, '--global-property', skipped], { cwd: folder })
  const bin = join(home, 'venv/bin')
  await run('python3', ['-m', 'venv', 'venv'], { cwd: home })
  await run(join(bin, 'pip'), ['install', '--quiet', '.'], { cwd: home })
  const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  const asked = (operationId: string, tag: string, given: string) =>
    `stats.${tag}Api(client).${snake(operationId)}(${given})\nprint('${operationId}')\n`
  const lines = calls.map(({ operationId, tag, inPath }) =>
    asked(operationId, tag, inPath.map((value) => JSON.stringify(value)).join())
  )
  const operations = operationsOf(await readFile(join(folder, 'openapi.json'), 'utf8'))
  const windowed = WINDOWED.map((id) =>
    asked(id, operations.get(id)?.tag ?? '', 'var_from=begin.isoformat(), to=end.strftime("%Y-%m-%dT%H:%M:%S%z")')
  )
  const client = `import datetime, stats
client = stats.ApiClient(stats.Configuration(host='${baseUrl}'))
end = datetime.datetime.now(datetime.timezone.utc)
begin = end - datetime.timedelta(days=2)
${[...lines, ...windowed].join('')}`
  await writeFile(join(home, 'main.py'), client)
  // Not in the folder of the sources, so that the installed package is imported.
  return (await run(join(bin, 'python'), ['-I', join(home, 'main.py')], { cwd: folder })).stdout.trim()
}

/** Fetches openapi-generator from Maven; returns the name of its file. */
async function generatorOf(folder: string, version: string): Promise<string> {
  const artifact = `org.openapitools:openapi-generator-cli:${version}`
  await run('mvn', ['-q', 'dependency:copy', `-Dartifact=${artifact}`, '-DoutputDirectory=.'], { cwd: folder })
  return `openapi-generator-cli-${version}.jar`
}

async function askInGo(folder: string, baseUrl: string, calls: readonly Call[]): Promise<string> {
  const generator = await generatorOf(folder, GENERATORS[0])
  const settings = 'packageName=gamenet,withGoMod=true'
  const moduleName = '--git-host example.org --git-user-id example --git-repo-id gamenet'.split(' ')
  const skipped = 'apiTests=false,modelTests=false'
  const generate = [
    'generate',
    '-g',
    'go',
    '-i',
    'openapi.json',
    '-o',
    'go',
    ...moduleName,
    '--additional-properties',
    settings
  ]
  await run('java', ['-jar', generator, ...generate, '--global-property', skipped], {
    cwd: folder
  })
  const lines = calls.map(({ operationId, tag, inPath }) => {
    const name = operationId.charAt(0).toUpperCase() + operationId.slice(1)
    const given = ['context.Background()', ...inPath.map((value) => JSON.stringify(value))].join(', ')
    return `\tif _, _, err := client.${tag}API.${name}(${given}).Execute(); err == nil { fmt.Println("${operationId}") } else { fmt.Println(err) }\n`
  })
  const client = `package main
import ("context"; "fmt"; gamenet "example.org/example/gamenet")
func main() {
\tconfiguration := gamenet.NewConfiguration()
\tconfiguration.Servers = gamenet.ServerConfigurations{{URL: "${baseUrl}"}}
\tclient := gamenet.NewAPIClient(configuration)
${lines.join('')}}\n`
  const main = join(folder, 'go/main')
  await mkdir(main, { recursive: true })
  await writeFile(join(main, 'main.go'), client)
  const env = { ...process.env, GOFLAGS: '-mod=mod' }
  return (await run('go', ['run', './main'], { cwd: join(folder, 'go'), env })).stdout.trim()
}
