import type { Schema } from '../open-api/example.js'
import { SAMPLED, type SampleValues, type SignIn } from './sample-values.js'

export type Operation = {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly deprecated?: boolean
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> }
  readonly security?: readonly object[]
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Content>> }>>
}

export type Parameter = {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly description?: string
  readonly example?: unknown
  readonly schema: Schema
}

type Content = { readonly schema?: Schema; readonly example?: unknown }

/** One operation with its place in the document. */
export type Placed = Operation & { readonly path: string; readonly method: string }

type Sample = {
  readonly base: string
  readonly method: string
  readonly url: string
  readonly body: unknown
  readonly operationId: string
  readonly input: Readonly<Record<string, unknown>>
  /** The name of a saved question, which the SDK takes as an argument. */
  readonly question: string | undefined
  /** For an operation that needs a session. */
  readonly signIn: SignIn | undefined
}

/** Returns requests of an operation for names that this service has; where it has none, the sample says so. */
export function samplesOf(
  operation: Placed,
  base: string,
  { named, signIn }: SampleValues
): readonly { readonly language: string; readonly text: string }[] {
  const { method, operationId, parameters = [], security = [] } = operation
  const isEdit = method === 'PATCH' || method === 'PUT'
  const known: SampleValues['named'] = isEdit ? { ...named, username: signIn.username } : named
  const used = parameters.filter(({ required }) => required)
  const sampled = (name: string, example: unknown) => known[name] ?? example
  const given = Object.fromEntries(used.map(({ name, example }) => [name, sampled(name, example)]))
  const example = Object.values(operation.requestBody?.content ?? {})[0]?.example as object | undefined
  const body = example && Object.fromEntries(Object.entries(example).map(([name, each]) => [name, sampled(name, each)]))
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(given[name] ?? '')))
  const inQuery = used
    .filter(({ in: place }) => place === 'query')
    .map(({ name }) => [name, String(given[name])] as [string, string])
  const query = new URLSearchParams(inQuery).toString()
  const needsKey = method !== 'GET' && security.length > 0
  const sample: Sample = {
    base,
    method,
    url: `${base}${path}${query === '' ? '' : `?${query}`}`,
    body,
    operationId,
    input: { ...given, ...body },
    question: /^\/api\/questions\/([\w-]+)$/.exec(path)?.[1],
    signIn: needsKey ? signIn : undefined
  }
  const missing = Object.keys(sample.input).find((name) => name in SAMPLED && known[name] === undefined)
  const notes = [
    ...(missing === undefined ? [] : [`This service has no ${SAMPLED[missing]} yet; the names below are inventions.`]),
    ...(needsKey && signIn.url === undefined
      ? ['This service has no auth service (AUTH_URL); nobody can sign in.']
      : [])
  ]
  const noted = (mark: string, text: string) => [...notes.map((note) => `${mark} ${note}`), text].join('\n')
  return [
    { language: 'curl', text: noted('#', curl(sample)) },
    ...(isInSdk(operation) ? [{ language: 'TypeScript', text: noted('//', typescript(sample)) }] : []),
    { language: 'Python', text: noted('#', python(sample)) }
  ]
}

function curl({ method, url, body, signIn }: Sample): string {
  const parts = [
    method === 'GET' ? '' : `-X ${method}`,
    signIn === undefined ? '' : '-H "X-Session-Key: $KEY"',
    body === undefined ? '' : `-H 'Content-Type: application/json' -d ${shell(JSON.stringify(body))}`
  ].filter((part) => part !== '')
  return [...(signIn === undefined ? [] : [keyByCurl(signIn)]), ['curl', ...parts, shell(url)].join(' ')].join('\n')
}

/** Returns the lines of a shell that put a session key into `KEY`. */
export function keyByCurl(signIn: SignIn): string {
  return `KEY=$(curl -s -H 'Content-Type: application/json' -d ${shell(JSON.stringify(account(signIn)))} \\
  ${shell(loginUrl(signIn))} | sed 's/.*"sessionKey":"\\([^"]*\\)".*/\\1/')`
}

const account = ({ email, password }: SignIn) => ({ email, password })

const loginUrl = ({ url = '{auth_url}' }: SignIn): string => `${url}/api/auth/login`

/** Returns whether the SDK has a method of the operation's name; the stream and lists of files have other names. */
const isInSdk = ({ path }: Placed): boolean => path.startsWith('/api/') && !/^\/api\/(stream|data)$/.test(path)

function typescript({ base, operationId, input, signIn, question }: Sample): string {
  const given = Object.keys(input).length === 0 ? '' : JSON.stringify(input)
  const call = question === undefined ? `${operationId}(${given}` : `question('${question}'${given && ', '}${given}`
  const login =
    signIn === undefined
      ? ''
      : `
const { sessionKey } = await fetch('${loginUrl(signIn)}', {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(${JSON.stringify(account(signIn))})
}).then((answer) => answer.json())`
  return `import { gamenetClient } from '@gamenet/sdk'
${login}
const gamenet = gamenetClient({ baseUrl: '${base}' })
console.log(await gamenet.${call}${signIn === undefined ? '' : ', { sessionKey }'}))`
}

function python({ method, url, body, signIn }: Sample): string {
  const further = [
    signIn === undefined ? '' : "headers={'X-Session-Key': key}",
    body === undefined ? '' : `json=${pythonText(body)}`
  ].filter((part) => part !== '')
  const login =
    signIn === undefined
      ? ''
      : `
key = requests.post(${pythonText(loginUrl(signIn))}, json=${pythonText(account(signIn))}).json()['sessionKey']`
  return `import requests
${login}
answer = requests.${method.toLowerCase()}(${[pythonText(url), ...further].join(', ')})
answer.raise_for_status()
print(answer.json())`
}

/** Returns a value as a Python literal: JSON, except for three words. */
function pythonText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonText).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([name, each]) => `${JSON.stringify(name)}: ${pythonText(each)}`)
      .join(', ')}}`
  }
  if (value === null) return 'None'
  return typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value)
}

const shell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
