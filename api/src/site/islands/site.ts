import { keepLists } from './lists.js'
import { followLive } from './live.js'
import { followLocal } from './local.js'
import { keep } from './service.js'
import { suggest } from './suggest.js'

followOldAddress()

followLocal()
chooseTheme()
shareLinks()
zoneLinks()
suggest()
keepLists()
followLive()
filterRows()

/** The former page said by `#title=…&range=…` what it showed. */
function followOldAddress(): void {
  const said = new URLSearchParams(location.hash.slice(1))
  const title = said.get('title')
  said.delete('title')
  if (location.pathname !== '/' || !/^#(title|range)=/.test(location.hash)) return
  location.replace(`${title === null ? '/' : `/games/${encodeURIComponent(title)}`}?${said}`)
}

function chooseTheme(): void {
  const button = document.getElementById('theme')
  button?.addEventListener('click', () => {
    const root = document.documentElement
    const isDark =
      root.dataset.theme === 'dark' ||
      (root.dataset.theme === undefined && matchMedia('(prefers-color-scheme: dark)').matches)
    root.dataset.theme = isDark ? 'light' : 'dark'
    keep('theme', root.dataset.theme)
  })
}

function shareLinks(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button.share')) {
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

/** Hides the rows of a whole list that do not contain the words of its filter, while they are typed. */
function filterRows(): void {
  const list = document.querySelector<HTMLElement>('[data-filtered]')
  const field = document.querySelector<HTMLInputElement>(`main input[name="${list?.dataset.filtered}"]`)
  field?.addEventListener('input', () => {
    const words = field.value.toLowerCase().trim()
    for (const row of list?.querySelectorAll<HTMLElement>('tbody tr') ?? []) {
      row.hidden = !row.textContent.toLowerCase().includes(words)
    }
  })
}
