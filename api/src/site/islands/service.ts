/*
 * Islands read with fetch, not with the SDK's client: without a bundler a page would send 33 requests for the client
 * instead of at most 8 for everything, and the islands make nine plain calls.
 */

/** Addresses that were refused: they are asked again when the data have changed. */
const refused = new Set<string>()
addEventListener('livepoint', () => refused.clear())

/** Returns an answer of the API; undefined where there is none. */
export const read = async <Body>(path: string): Promise<Body | undefined> => await (await asked(path))?.json()

/** Returns a page of the site as a document; undefined where there is none. */
export async function readPage(href: string): Promise<Document | undefined> {
  const text = await (await asked(href))?.text()
  return text === undefined ? undefined : new DOMParser().parseFromString(text, 'text/html')
}

async function asked(path: string): Promise<Response | undefined> {
  if (refused.has(path)) return undefined
  const response = await fetch(path).catch(() => undefined)
  if (response?.ok === true) return response
  if (response !== undefined && response.status < 500) refused.add(path)
  return undefined
}

/** Returns what the browser keeps under a name. */
export function kept<Value>(name: string, otherwise: Value): Value {
  try {
    return JSON.parse(localStorage.getItem(name) ?? 'null') ?? otherwise
  } catch {
    return otherwise
  }
}

/** Keeps a value in the browser; while its storage is blocked, nothing is kept. */
export function keep(name: string, value: unknown): void {
  try {
    localStorage.setItem(name, JSON.stringify(value))
  } catch {
    // The choice lasts as long as the page.
  }
}

/** Returns a button with a text. */
export function buttonOf(text: string, onClick: () => unknown): HTMLButtonElement {
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = text
  button.onclick = onClick
  return button
}

/** Returns a link with a text. */
export function linkOf(href: string, text: string): HTMLAnchorElement {
  const link = document.createElement('a')
  link.href = href
  link.textContent = text
  return link
}
