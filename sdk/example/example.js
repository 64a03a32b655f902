/*
 * ServiceAuth keeps the session and talks to the auth service; the service's own API is asked with plain `fetch` and
 * the session's key in the header X-Session-Key. All that comes from others is shown as text, never as markup.
 */

const auth = new ServiceAuth()
const byId = (id) => document.getElementById(id)
/** The key of this page's login: where the browser keeps nothing, it is nowhere else. */
let loginKey = null

auth.on('error', ({ message }) => say(message, true))

byId('login').addEventListener('submit', (event) => {
  event.preventDefault()
  const { email, password } = valuesOf(event.target)
  attempt(async () => {
    loginKey = (await auth.login(email, password)).sessionKey
    event.target.reset()
    say('')
    await showUser()
  })
})
byId('logout').addEventListener('click', () => attempt(() => auth.logout().finally(showUser)))
byId('refresh').addEventListener('click', () => attempt(async () => showFriends(await auth.refreshFriends())))
byId('user').addEventListener('click', (event) => attempt(() => showProfile(event.target.textContent)))
byId('look').addEventListener('submit', (event) => {
  event.preventDefault()
  attempt(() => showProfile(valuesOf(event.target).username))
})
byId('rate').addEventListener('submit', (event) => {
  event.preventDefault()
  const { stars, comment } = valuesOf(event.target)
  const username = byId('profile-name').textContent
  attempt(async () => {
    await ask(`/api/profile/${encodeURIComponent(username)}/reputation`, { stars: Number(stars), comment })
    await showProfile(username)
    say(`You gave ${username} ${stars} stars.`)
  })
})
// Another tab signed somebody in or out.
addEventListener('storage', () => attempt(showUser))
// A session that ends while the page is open is noticed within five minutes.
auth.startAutoVerify(300_000, () => attempt(showUser))
attempt(showUser)

async function showUser() {
  const user = await auth.getUser()
  byId('login').hidden = user !== null
  byId('signed-in').hidden = user === null
  byId('rate').hidden = user === null
  byId('user').textContent = user?.username ?? ''
  if (user === null) loginKey = null
  showFriends(user === null ? { friends: [] } : await auth.getFriends())
}

function showFriends({ friends }) {
  const lines = friends.map(({ gamertag, isOnline, game, duration, lastSeen }) =>
    isOnline ? `${gamertag} plays ${game}, for ${duration}` : `${gamertag} was last seen ${lastSeen}`
  )
  byId('friends').replaceChildren(...lines.map(listItem))
}

async function showProfile(username) {
  const path = `/api/profile/${encodeURIComponent(username)}`
  const [profile, reputation] = await Promise.all([ask(path), ask(`${path}/reputation`)])
  const { playTime, achievementScore, achievementCount } = profile
  const { average, ratingCount, feedback, viewer } = reputation
  const state = playTime.currentGame === null ? playTime.lastState : `plays ${playTime.currentGame}`
  byId('profile-name').textContent = profile.username
  byId('profile-facts').textContent =
    `${state}; ${Math.floor(playTime.totalMinutes / 60)} hours played; ` +
    `${achievementCount} achievements, ${achievementScore} points`
  byId('reputation').textContent =
    `${average} stars of ${ratingCount} ratings${viewer === null ? '' : `; you gave ${viewer.stars}`}`
  byId('feedback').replaceChildren(
    ...feedback.map(({ raterUsername, stars, comment }) =>
      listItem(`${raterUsername}: ${stars} stars${comment === null ? '' : `, “${comment}”`}`)
    )
  )
  byId('profile').hidden = false
}

/**
 * Asks the service, with the session where there is one; posts a body where one is given. Rejects with its sentence.
 */
async function ask(path, body) {
  const sessionKey = storedKey() ?? loginKey
  const headers = {
    ...(sessionKey === null ? {} : { 'X-Session-Key': sessionKey }),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' })
  }
  const options = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
  const response = await fetch(path, options)
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error)
  return answer
}

/** The session that ServiceAuth keeps, of whichever tab. */
function storedKey() {
  try {
    return JSON.parse(localStorage.getItem(auth.storageKey))?.sessionKey ?? null
  } catch {
    return null
  }
}

/** Runs what a click asks for; whatever fails is said on the page. */
function attempt(work) {
  work().catch((error) => say(error.message, true))
}

function say(text, hasFailed = false) {
  const message = byId('message')
  message.textContent = text
  message.dataset.failed = String(hasFailed)
}

function valuesOf(form) {
  return Object.fromEntries(new FormData(form))
}

function listItem(text) {
  const item = document.createElement('li')
  item.textContent = text
  return item
}
