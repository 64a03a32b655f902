/**
 * The element of an id, which the page has.
 * @param {string} id
 */
export const element = (id) => elementOf(id, HTMLElement)

/**
 * The element of an id, of one kind. Throws when the page has none.
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export function elementOf(id, kind) {
  const found = document.getElementById(id)
  if (found instanceof kind) return found
  throw new Error(`The page has no ${kind.name} with the id ${id}.`)
}

/**
 * A foreign text in an element of its own: text that runs from right to left must not reverse the line around it.
 * @param {string} text
 */
export function isolated(text) {
  const made = document.createElement('bdi')
  made.textContent = text
  return made
}

/**
 * An element around nodes and texts.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {string} className
 * @param {(Node | string)[]} children
 */
export function node(tag, className, ...children) {
  const made = document.createElement(tag)
  if (className !== '') made.className = className
  made.append(...children)
  return made
}

/**
 * The cell that names a row of a table.
 * @param {(Node | string)[]} children
 */
export function rowHeader(...children) {
  const made = node('th', '', ...children)
  made.scope = 'row'
  return made
}

/**
 * A cell of a table with a number in it.
 * @param {string} text
 */
export function numberCell(text) {
  return node('td', 'number', isolated(text))
}

/**
 * A button that looks like text.
 * @param {string} text
 * @param {() => void} onPress
 */
export function textButton(text, onPress, title = '') {
  const button = node('button', 'text-button', isolated(text))
  button.type = 'button'
  if (title !== '') button.title = title
  button.addEventListener('click', onPress)
  return button
}

/**
 * Replaces the children of a place. When the focus was on a button among them, it moves to the button at the same
 * index, so that it does not return to the top of the page.
 * @param {HTMLElement} place
 * @param {(Node | string)[]} children
 */
export function replaceChildren(place, children) {
  const focusable = () => [...place.querySelectorAll('button')]
  const focused = document.activeElement
  const index = focused instanceof HTMLButtonElement ? focusable().indexOf(focused) : -1
  place.replaceChildren(...children)
  if (index === -1) return
  const now = focusable()
  now[Math.min(index, now.length - 1)]?.focus({ preventScroll: true })
}

/**
 * Shows a sentence in its place, or hides the place when it is "".
 * @param {HTMLElement} place
 * @param {string} text
 */
export function showMessage(place, text) {
  place.hidden = text === ''
  setText(place, text)
}

/**
 * Sets a text only when it differs: a live region reads out every write.
 * @param {HTMLElement | undefined} place
 * @param {string} text
 */
export function setText(place, text) {
  if (place !== undefined && place.textContent !== text) place.textContent = text
}
