import { Away, ask } from './ask.js'
import { showMessage } from './nodes.js'

/**
 * A place of the page that shows one answer of the API. It shows "Loading…" before the first answer, the previous
 * answer in paler colours while another one loads, and the reason when there is none. The answer stays while the
 * service is unavailable.
 * @template Body
 */
export class Part {
  #message
  #contents
  #draw
  #requests = 0
  /** @type {string | undefined} */
  #path
  /** @type {Body | undefined} */
  #body

  /**
   * @param {{
   *   message: HTMLElement
   *   contents: readonly HTMLElement[]
   *   draw: (body: Body) => string
   * }} needs the place of sentences; the elements to hide without an answer; `draw` shows an answer and returns "" or a
   *   sentence to show instead of the contents
   */
  constructor({ message, contents, draw }) {
    this.#message = message
    this.#contents = contents
    this.#draw = draw
  }

  /**
   * Shows only a sentence.
   * @param {string} sentence
   */
  clear(sentence) {
    this.#requests += 1
    this.#path = undefined
    this.#say(sentence)
  }

  /**
   * Requests an answer and shows it if it is a new one. Throws {@link Away}.
   * @param {string} path
   */
  async show(path) {
    const number = ++this.#requests
    if (path !== this.#path) this.#await(path)
    try {
      /** @type {import('./ask.js').Reply<Body>} */
      const { body } = await ask(path)
      if (number === this.#requests) this.#show(body)
    } catch (error) {
      const hasAnswer = error instanceof Away && this.#body !== undefined
      if (number === this.#requests && !hasAnswer) this.#say(messageOf(error))
      if (error instanceof Away) throw error
    }
  }

  /** @param {string} path */
  #await(path) {
    this.#path = path
    for (const content of this.#contents) content.setAttribute('aria-busy', 'true')
    if (this.#body === undefined) showMessage(this.#message, 'Loading…')
  }

  /** @param {Body} body */
  #show(body) {
    for (const content of this.#contents) content.removeAttribute('aria-busy')
    if (body === this.#body) return
    this.#body = body
    const sentence = this.#draw(body)
    showMessage(this.#message, sentence)
    for (const content of this.#contents) content.hidden = sentence !== ''
  }

  /** @param {string} sentence */
  #say(sentence) {
    this.#body = undefined
    showMessage(this.#message, sentence)
    for (const content of this.#contents) content.hidden = true
  }
}

/**
 * Waits for all jobs, then throws the first failure.
 * @param {readonly Promise<unknown>[]} jobs
 */
export async function settleAll(jobs) {
  const failure = (await Promise.allSettled(jobs)).find((result) => result.status === 'rejected')
  if (failure !== undefined) throw failure.reason
}

/**
 * The sentence of an error.
 * @param {unknown} error
 */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error)
}
