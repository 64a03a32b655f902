import type { EditedProfile, ProfileSummary } from '@gamenet/schemas'
import { kept } from './service.js'

type User = { username: string }
type Auth = {
  login(email: string, password: string): Promise<{ sessionKey: string }>
  logout(): Promise<void>
  getUser(): Promise<User | null>
}
/** The fields of the form, as text: what the form says of a profile, and a profile as the form shows it. */
type Fields = Readonly<Record<string, string>>

/** The key of this page’s login: where the browser keeps nothing, it is nowhere else. */
let loginKey = ''
/** The fields as they were read: an edit sends those that differ, so that an edit of another tab is not undone. */
let before: Fields = {}

void start()

/** Signs in, edits one's own profile, and rates others. The key is sent in a header only, and kept by ServiceAuth. */
async function start(): Promise<void> {
  const path = '/service-auth.mjs'
  const { ServiceAuth } = (await import(path)) as { ServiceAuth: new () => Auth }
  const auth = new ServiceAuth()
  const show = async (): Promise<void> => showUser(await auth.getUser().catch(() => null))
  onSubmit('login', async ({ email = '', password = '' }) => {
    loginKey = (await auth.login(email, password)).sessionKey
    form('login')?.reset()
    await show()
  })
  onSubmit('edit', (fields) => save(auth, fields))
  onSubmit('rate', rate)
  document
    .querySelector('#signed-in button')
    ?.addEventListener('click', () => attempt(() => auth.logout().finally(show)))
  // Another tab signed somebody in or out.
  addEventListener('storage', () => void show())
  await show()
}

async function showUser(user: User | null): Promise<void> {
  const isOwn = user !== null && user.username.toLowerCase() === form('rate')?.dataset.user?.toLowerCase()
  const shown = {
    login: user === null,
    'signed-in': user !== null,
    // Shown with its fields.
    edit: false,
    rate: user !== null && !isOwn,
    own: isOwn
  }
  for (const [id, isShown] of Object.entries(shown)) document.getElementById(id)?.toggleAttribute('hidden', !isShown)
  const edit = form('edit')
  if (user === null || edit === null) return
  const link = document.getElementById('own-page')
  if (link !== null) {
    link.textContent = user.username
    link.setAttribute('href', `/users/${encodeURIComponent(user.username)}`)
  }
  // A user who signs in for the first time has no profile yet.
  const found = await ask<ProfileSummary>('GET', pathOf(user.username)).catch(() => undefined)
  before = found === undefined ? {} : fieldsOf(found.profile)
  for (const [name, text] of Object.entries(before)) {
    const field = edit.elements.namedItem(name)
    if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) field.value = text
  }
  edit.hidden = false
}

const pathOf = (username: string): string => `/api/profile/${encodeURIComponent(username)}`

/** A profile as the form shows it; the answer to a reader does not have the hue, which is then "" until it is given. */
function fieldsOf({ social_links, ...profile }: ProfileSummary['profile'] | EditedProfile): Fields {
  const plain = Object.entries(profile).map(([name, value]) => [name, value === null ? '' : String(value)])
  const links = social_links.map(({ platform, url }) => `${platform} ${url}`).join('\n')
  return { avatar_hue: '', ...Object.fromEntries(plain), social_links: links }
}

/** What the service expects of a field: links a line each, and nothing where a number or name is left out. */
function sentValueOf(name: string, text: string): unknown {
  if (name === 'avatar_hue') return text === '' ? null : Number(text)
  if (name === 'display_name_override') return text === '' ? null : text
  if (name !== 'social_links') return text
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return lines.map((line) => {
    const [, platform, url] = /^(.*?)\s*(\S+)\s*$/.exec(line) ?? []
    return { platform: platform || new URL(url ?? '').hostname, url }
  })
}

async function save(auth: Auth, fields: Fields): Promise<void> {
  const user = await auth.getUser()
  if (user === null) throw new Error('Your session has ended. Sign in again.')
  const changed = Object.entries(fields).filter(([name, text]) => text !== (before[name] ?? ''))
  const edit = Object.fromEntries(changed.map(([name, text]) => [name, sentValueOf(name, text)]))
  before = fieldsOf(await ask<EditedProfile>('PATCH', pathOf(user.username), edit))
  say('Saved.')
}

async function rate({ stars, comment }: Fields): Promise<void> {
  const rated = form('rate')?.dataset.user ?? ''
  const body = { stars: Number(stars), ...(comment === '' ? {} : { comment }) }
  await ask('POST', `${pathOf(rated)}/reputation`, body)
  location.reload()
}

async function ask<Body>(method: string, path: string, body?: unknown): Promise<Body> {
  const response = await fetch(path, {
    method,
    // ServiceAuth keeps the session under this name.
    headers: {
      'X-Session-Key': kept('service_auth', { sessionKey: loginKey }).sessionKey,
      'Content-Type': 'application/json'
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error)
  return answer
}

async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    say('')
    await work()
  } catch (error) {
    say(error instanceof Error ? error.message : String(error))
  }
}

function say(text: string): void {
  const place = document.getElementById('said') ?? document.querySelector('#rate output')
  if (!(place instanceof HTMLElement)) return
  place.textContent = text
  place.hidden = text === ''
}

const form = (id: string): HTMLFormElement | null => document.querySelector<HTMLFormElement>(`form#${id}`)

function onSubmit(id: string, work: (fields: Fields) => Promise<unknown>): void {
  form(id)?.addEventListener('submit', (event) => {
    event.preventDefault()
    const data = new FormData(event.target as HTMLFormElement)
    void attempt(() => work(Object.fromEntries([...data].map(([name, value]) => [name, String(value)]))))
  })
}
