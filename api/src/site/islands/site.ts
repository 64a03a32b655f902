import { keepLists } from './lists.js'
import { followLive } from './live.js'
import { showLocal } from './local.js'
import { suggest } from './suggest.js'

showLocal()
chooseTheme()
shareLinks()
zoneLinks()
suggest()
keepLists()
followLive()

function chooseTheme(): void {
  const button = document.getElementById('theme')
  if (button === null) return
  button.hidden = false
  button.addEventListener('click', () => {
    const root = document.documentElement
    const isDark =
      root.dataset.theme === 'dark' ||
      (root.dataset.theme === undefined && matchMedia('(prefers-color-scheme: dark)').matches)
    root.dataset.theme = isDark ? 'light' : 'dark'
    try {
      localStorage.setItem('theme', root.dataset.theme)
    } catch {
      // Storage is blocked: the theme lasts as long as the page.
    }
    dispatchEvent(new Event('themechange'))
  })
}

function shareLinks(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button.share')) {
    button.hidden = false
    button.addEventListener('click', async () => {
      const url = location.href
      try {
        if (navigator.share !== undefined) await navigator.share({ title: document.title, url })
        else await navigator.clipboard.writeText(url)
        button.textContent = 'Link copied'
      } catch {
        // The reader closed the dialog, or the browser forbids it; the address stands in the bar.
      }
    })
  }
}

/** Links to the same page by the days and hours of the reader's zone. */
function zoneLinks(): void {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  for (const link of document.querySelectorAll<HTMLAnchorElement>('a.in-zone')) {
    const url = new URL(location.href)
    if (zone === 'UTC' || url.searchParams.get('tz') === zone) continue
    url.searchParams.set('tz', zone)
    url.hash = new URL(link.href).hash
    link.href = url.href
    link.hidden = false
  }
}
