import { shownInstant } from '@gamenet/schemas'
import { failureText } from './engine-failures.js'

/**
 * Returns what to call after each round of a work that is repeated, with its error if it failed: while the last round
 * failed, `damageMet` says why, and since when.
 */
export function failureSince(damageMet: Set<string>, what: string): (error?: unknown) => void {
  let [since, sentence] = ['', '']
  return (error) => {
    damageMet.delete(sentence)
    since = error === undefined ? '' : since || shownInstant(Date.now())
    if (error === undefined) return
    sentence = `${what} since ${since}: ${failureText(error)}`
    damageMet.add(sentence)
  }
}
