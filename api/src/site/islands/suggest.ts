const LETTERS_MIN = 2
const WAIT_MS = 150
const LIMIT = 6

type Result = { kind: string; name?: string; username?: string; gameName?: string }

const known = new Map<string, readonly string[]>()

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
  // A refused question is not asked again.
  const names = known.get(words) ?? (await ask(words).catch(() => []))
  known.set(words, names)
  list.replaceChildren(
    ...names.map((name) => {
      const option = document.createElement('option')
      option.value = name
      return option
    })
  )
}

async function ask(words: string): Promise<string[]> {
  const response = await fetch(`/api/search?q=${encodeURIComponent(words)}&limit=${LIMIT}`)
  if (!response.ok) return []
  const found: Result[] = await response.json()
  return [...new Set(found.map(({ name, username }) => name ?? username ?? ''))].slice(0, 2 * LIMIT)
}
