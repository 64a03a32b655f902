import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { test } from 'tap'
import { Caller, signIn, startAuth, startPeopleService } from './service/people-service.js'

/** Only what hangs meets it. */
const WAIT_MS = 60_000

const browserPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
const isBrowserMissing = browserPath === undefined && process.env.CI !== 'true'
if (isBrowserMissing) console.error('NO BROWSER is installed: the example page is not tested in one.')
const skip = isBrowserMissing ? 'NO BROWSER is installed: the example page is not tested in one' : false

test('the example page signs in, shows friends and rates a profile, under its strict policy', { skip }, async (t) => {
  const auth = await startAuth(t)
  const [ann, ben] = auth.people
  if (ann === undefined || ben === undefined) throw new Error('The demo auth service has fewer than two accounts.')
  const service = await startPeopleService(t.testdir({}), auth)
  t.teardown(() => service.kill())
  const caller = new Caller(service, 1)
  const other = await signIn(auth, ben)
  await caller.ask('PATCH', `/api/profile/${ben.username}`, other, { bio: 'hello' })
  await caller.close()

  const browser = await chromium.launch({
    executablePath: browserPath ?? '',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']
  })
  t.teardown(() => browser.close())
  const page = await browser.newPage()
  page.setDefaultTimeout(WAIT_MS)
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => {
    if (/policy|uncaught/i.test(message.text())) faults.push(message.text())
  })
  const answer = await page.goto(`${service.apiUrl}/example/`)
  t.match(answer?.headers()['content-security-policy'], `default-src 'none'; script-src 'self'`)
  t.match(answer?.headers()['content-security-policy'], `connect-src 'self' ${auth.url};`)

  const signInAs = async (email: string, password: string) => {
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
  }
  await signInAs(ann.email, 'not her password')
  await page.getByText('The email address or the password is wrong.').waitFor()
  await signInAs(ann.email, ann.password)
  await page.getByRole('button', { name: ann.username }).waitFor()
  await page.locator('#friends li').first().waitFor()
  const friends = await page.locator('#friends li').allTextContents()
  t.ok(friends.length > 3)
  t.ok(friends.every((line) => / plays .+, for \d| was last seen /.test(line)))

  await page.getByLabel('Username').fill(ben.username.toUpperCase())
  await page.getByRole('button', { name: 'Show' }).click()
  await page.getByText('5 stars of 0 ratings').waitFor()
  t.equal(await page.locator('#profile-name').textContent(), ben.username)
  await page.getByLabel('Stars').fill('2')
  await page.getByLabel('Comment').fill('<b>bold</b> & fair')
  await page.getByRole('button', { name: 'Rate' }).click()
  await page.getByText('4.73 stars of 1 ratings; you gave 2').waitFor()
  await page.getByText(`${ann.username}: 2 stars, “<b>bold</b> & fair”`).waitFor()

  await page.getByRole('button', { name: ann.username }).click()
  await page.locator('#profile-name', { hasText: ann.username }).waitFor()
  await page.getByRole('button', { name: 'Rate' }).click()
  await page.locator('#message[data-failed="true"]').waitFor()
  t.match(await page.locator('#message').textContent(), /yourself|own/i)

  await page.reload()
  await page.getByRole('button', { name: ann.username }).waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  t.equal(await page.evaluate(`localStorage.getItem('service_auth')`), null)
  t.same(faults, [], 'no violation of the policy, no unhandled rejection')
  t.equal(await service.stop(), 0, service.stderr())
})
