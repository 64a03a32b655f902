import type { SearchResults } from '@gamenet/schemas'
import { read } from './service.js'

const LETTERS_MIN = 2
const WAIT_MS = 150
const LIMIT = 6

/** Suggests names at the search field, and focuses it with the key "/". */
export function suggest(): void {
  const input = document.querySelector<HTMLInputElement>('.top .search input')
  const list = document.getElementById('suggested')
  if (input === null || list === null) return
  let timer: ReturnType<typeof setTimeout> | undefined
  input.addEventListener('input', () => {
    clearTimeout(timer)
    timer = setTimeout(() => void fill(list, input.value.trim()), WAIT_MS)
  })
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof Element && event.target.matches('input, textarea, select')
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    input.focus()
  })
}

async function fill(list: HTMLElement, words: string): Promise<void> {
  if (words.length < LETTERS_MIN || words.length > 100) return
  const found = (await read<SearchResults>(`/api/search?q=${encodeURIComponent(words)}&limit=${LIMIT}`)) ?? []
  const names = [...new Set(found.map(({ name }) => name))].slice(0, 2 * LIMIT)
  list.replaceChildren(
    ...names.map((name) => {
      const option = document.createElement('option')
      option.value = name
      return option
    })
  )
}
