import { z } from 'zod'
import { Labelled } from '../components/form.js'
import { page } from '../values/page.js'

/** `/me`: sign-in, then the form to edit one's own profile, filled in by script; the key stays in the browser. */
export const mePage = page({
  name: 'page-me',
  path: '/me',
  input: z.object({}),
  parts: () => ({}),
  view: (_answers, _input, { site }) => ({
    title: 'Sign in',
    canonical: '/me',
    isUnlisted: true,
    islands: ['me'],
    content: (
      <>
        <h1>Your page</h1>
        <noscript>
          <p class="note">
            Signing in needs JavaScript: your session key must never be part of an address or a cookie.
          </p>
        </noscript>
        {site.authUrl === undefined ? (
          <p class="note">This service has no sign-in configured (AUTH_URL).</p>
        ) : (
          <SignIn />
        )}
        <output id="said" class="note" hidden />
        <form id="edit" class="card form" hidden>
          <h2>Edit your profile</h2>
          <Labelled label="Display name" name="display_name_override" maxlength={32} />
          <Labelled label="Gamertag" name="linked_gamertag" maxlength={32} />
          <label>
            About you <textarea name="bio" maxlength={500} rows={3} />
          </label>
          <Labelled label="Address of a picture" name="avatar_url" type="url" maxlength={500} />
          <Labelled label="Address of your chat profile" name="chat_profile_url" type="url" maxlength={500} />
          <label>
            Links, one a line: name and address (with a linked chat profile) <textarea name="social_links" rows={3} />
          </label>
          <Labelled label="Colour of your letter, 0 to 359 degrees" name="avatar_hue" type="number" min="0" max="359" />
          <button type="submit">Save</button>
        </form>
      </>
    )
  })
})

function SignIn() {
  return (
    <>
      <form id="login" class="card form">
        <h2>Sign in</h2>
        <Labelled label="Email" name="email" type="email" autocomplete="username" required />
        <Labelled label="Password" name="password" type="password" autocomplete="current-password" required />
        <button type="submit">Sign in</button>
        <p class="quiet">Your password goes to the network’s auth service, not to this one.</p>
      </form>
      <p id="signed-in" class="row" hidden>
        Signed in as{' '}
        <a id="own-page" href="/me">
          you
        </a>{' '}
        <button type="button">Sign out</button>
      </p>
    </>
  )
}
