import { Away, ask } from './ask.js'
import { showMessage } from './nodes.js'

/**
 * A place of the page that shows one answer of the API: while the first one is awaited it says so, while another one is
 * awaited it shows the one before, paler; when there is none it says why. A service that is away takes nothing from
 * what is shown.
 */
export class Part {
  #message
  #contents
  #draw
  #asked = 0
  #path
  #body

  /**
   * @param message where sentences are said
   * @param contents what is hidden while there is nothing to show
   * @param draw shows an answer, and gives the sentence to say with it, or ""; with one, the contents are hidden
   */
  constructor({ message, contents, draw }) {
    this.#message = message
    this.#contents = contents
    this.#draw = draw
  }

  /** Shows nothing but a sentence. */
  clear(sentence) {
    this.#asked += 1
    this.#path = undefined
    this.#say(sentence)
  }

  /** Asks, and shows the answer if it is another one. Throws when the service is away. */
  async show(path) {
    const asked = ++this.#asked
    if (path !== this.#path) this.#await(path)
    try {
      const { body } = await ask(path)
      if (asked === this.#asked) this.#show(body)
    } catch (error) {
      const isKept = error instanceof Away && this.#body !== undefined
      if (asked === this.#asked && !isKept) this.#say(error.message)
      if (error instanceof Away) throw error
    }
  }

  #await(path) {
    this.#path = path
    for (const content of this.#contents) content.setAttribute('aria-busy', 'true')
    if (this.#body === undefined) showMessage(this.#message, 'Loading…')
  }

  #show(body) {
    for (const content of this.#contents) content.removeAttribute('aria-busy')
    if (body === this.#body) return
    this.#body = body
    const sentence = this.#draw(body)
    showMessage(this.#message, sentence)
    for (const content of this.#contents) content.hidden = sentence !== ''
  }

  #say(sentence) {
    this.#body = undefined
    showMessage(this.#message, sentence)
    for (const content of this.#contents) content.hidden = true
  }
}

/** Asks for several parts at once; all are shown before the first failure is thrown. */
export async function showAll(showings) {
  const failure = (await Promise.allSettled(showings)).find(({ status }) => status === 'rejected')
  if (failure !== undefined) throw failure.reason
}
