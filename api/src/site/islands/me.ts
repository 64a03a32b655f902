type User = { username: string }
type Auth = {
  login(email: string, password: string): Promise<{ sessionKey: string }>
  logout(): Promise<void>
  getUser(): Promise<User | null>
}
type Profile = Record<string, string | null>

const FIELDS = ['display_name_override', 'linked_gamertag', 'bio', 'avatar_url', 'chat_profile_url'] as const

/** The key of this page’s login: where the browser keeps nothing, it is nowhere else. */
let loginKey = ''

void start()

/** Signs in, edits one's own profile, and rates others. The key is sent in a header only, and kept by ServiceAuth. */
async function start(): Promise<void> {
  const path = '/service-auth.mjs'
  const { ServiceAuth } = (await import(path)) as { ServiceAuth: new () => Auth }
  const auth = new ServiceAuth()
  const show = async (): Promise<void> => showUser(await auth.getUser().catch(() => null))
  form('login')?.addEventListener('submit', async (event) => {
    event.preventDefault()
    const { email, password } = valuesOf(event)
    await attempt(async () => {
      loginKey = (await auth.login(email ?? '', password ?? '')).sessionKey
      form('login')?.reset()
      await show()
    })
  })
  document
    .querySelector('#signed-in button')
    ?.addEventListener('click', () => attempt(() => auth.logout().finally(show)))
  form('edit')?.addEventListener('submit', (event) => {
    event.preventDefault()
    void attempt(() => save(auth, valuesOf(event)))
  })
  form('rate')?.addEventListener('submit', (event) => {
    event.preventDefault()
    void attempt(() => rate(valuesOf(event)))
  })
  // Another tab signed somebody in or out.
  addEventListener('storage', () => void show())
  await show()
}

let before: Profile = {}

async function showUser(user: User | null): Promise<void> {
  const link = document.getElementById('own-page')
  const login = form('login')
  if (login !== null) login.hidden = user !== null
  const signedIn = document.getElementById('signed-in')
  if (signedIn !== null) signedIn.hidden = user === null
  const edit = form('edit')
  if (edit !== null) edit.hidden = user === null
  const ratedUser = form('rate')?.dataset.user
  const rateForm = form('rate')
  if (rateForm !== null) rateForm.hidden = user === null || user.username.toLowerCase() === ratedUser?.toLowerCase()
  const own = document.getElementById('own')
  if (own !== null && user !== null && user.username.toLowerCase() === ratedUser?.toLowerCase()) {
    const toEdit = document.createElement('a')
    toEdit.href = '/me'
    toEdit.textContent = 'Edit your profile'
    own.replaceChildren(toEdit)
    own.hidden = false
  }
  if (user === null || edit === null) return
  if (link !== null) {
    link.textContent = user.username
    link.setAttribute('href', `/users/${encodeURIComponent(user.username)}`)
  }
  const { profile } = await ask('GET', `/api/profile/${encodeURIComponent(user.username)}`)
  before = profile
  for (const name of FIELDS) {
    const field = edit.elements.namedItem(name)
    if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) field.value = profile[name] ?? ''
  }
}

/** Sends the fields that differ: an edit of another tab is not undone. */
async function save(auth: Auth, values: Record<string, string>): Promise<void> {
  const user = await auth.getUser()
  if (user === null) throw new Error('Your session has ended. Sign in again.')
  const changed = FIELDS.filter((name) => (values[name] ?? '') !== (before[name] ?? ''))
  const edit = Object.fromEntries(
    changed.map((name) => [name, name === 'display_name_override' && values[name] === '' ? null : values[name]])
  )
  before = { ...before, ...(await ask('PATCH', `/api/profile/${encodeURIComponent(user.username)}`, edit)) }
  say('Saved.')
}

async function rate({ stars, comment }: Record<string, string>): Promise<void> {
  const rated = form('rate')?.dataset.user ?? ''
  const body = { stars: Number(stars), ...(comment === '' ? {} : { comment }) }
  await ask('POST', `/api/profile/${encodeURIComponent(rated)}/reputation`, body)
  location.reload()
}

async function ask(method: string, path: string, body?: unknown) {
  const response = await fetch(path, {
    method,
    headers: { 'X-Session-Key': sessionKey(), 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error)
  return answer
}

/** ServiceAuth keeps the session under this name. */
function sessionKey(): string {
  try {
    return JSON.parse(localStorage.getItem('service_auth') ?? '{}').sessionKey ?? loginKey
  } catch {
    return loginKey
  }
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

function form(id: string): HTMLFormElement | null {
  const found = document.getElementById(id)
  return found instanceof HTMLFormElement ? found : null
}

function valuesOf(event: Event): Record<string, string> {
  const data = new FormData(event.target as HTMLFormElement)
  return Object.fromEntries([...data].map(([name, value]) => [name, String(value)]))
}
