import { setText } from './history.js'

/** The element of an id; the page has all that are asked for. */
export const element = (id) => document.getElementById(id)

/** A text that came from elsewhere, kept apart: what runs from right to left must not turn the line around it. */
export function isolated(text) {
  const made = document.createElement('bdi')
  made.textContent = text
  return made
}

/** An element around nodes and texts. */
export function node(tag, className, ...children) {
  const made = document.createElement(tag)
  if (className !== '') made.className = className
  made.append(...children)
  return made
}

/** The cell that names a row of a table. */
export function rowHeader(...children) {
  const made = node('th', '', ...children)
  made.scope = 'row'
  return made
}

/** A cell of a table with a number in it. */
export function numberCell(text) {
  return node('td', 'number', isolated(text))
}

/** A name, or an instant, that shows something when it is pressed. */
export function textButton(text, onPress, title = '') {
  const button = node('button', 'text-button', isolated(text))
  button.type = 'button'
  if (title !== '') button.title = title
  button.addEventListener('click', onPress)
  return button
}

/**
 * Puts other children into a place. Whoever stood with the keyboard on one of them stands on the one that came into its
 * place, or on the place itself, and not at the beginning of the page.
 */
export function replaceChildren(place, children) {
  const focusable = () => [...place.querySelectorAll('button')]
  const index = focusable().indexOf(document.activeElement)
  place.replaceChildren(...children)
  if (index === -1) return
  const now = focusable()
  now[Math.min(index, now.length - 1)]?.focus({ preventScroll: true })
}

/** Shows a sentence in its place, or takes the place away. */
export function showMessage(place, text) {
  place.hidden = text === ''
  setText(place, text)
}
