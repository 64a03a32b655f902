import { readdir, readFile } from 'node:fs/promises'
import { ROOT } from './gamenet.js'

/*
 * sample   a fence of a page in a language that runs: a command, a program, a statement
 * mark     `[reason]` behind the language of a fence, such as ```sh [not run: needs Docker]
 *            [not run: reason]     nothing runs it
 *            [campaign name]       the campaign of this name runs it, since it needs packages, a broker or a server
 */

/** A fence of a page. */
export type Fence = {
  readonly page: string
  readonly line: number
  readonly language: string
  readonly mark: string | undefined
  readonly text: string
}

/** Fences of data, of drawings and of what programs print. A fence of commands is `sh`. */
const NO_SAMPLES = ['', 'json', 'text', 'html']

/** A line that can be pasted; a synopsis has placeholders. */
const COMMAND = /^(?:npm|npx|curl) (?!.*[<…])/m

/** Returns the fences of a page that someone may paste, in order, marked or not. */
export function samplesOf(page: string, text: string): Fence[] {
  const fences = [...text.matchAll(/^```(\w*)(?: \[([^\]\n]+)\])?\n(.*?)^```$/gms)].map((found) => {
    const [, language = '', mark, inside = ''] = found
    return { page, line: text.slice(0, found.index).split('\n').length, language, mark, text: inside }
  })
  const unnamed = fences.find(({ language, text }) => language === '' && COMMAND.test(text))
  if (unnamed !== undefined) throw new Error(`${page}:${unnamed.line} has a command; call the fence sh.`)
  return fences.filter(({ language }) => !NO_SAMPLES.includes(language))
}

/** Returns a page of the repository by its path. */
export const readPage = (page: string) => readFile(new URL(page, ROOT), 'utf8')

/** The paths of the pages for users, but those of docs/operators. */
export async function pagesForUsers(): Promise<string[]> {
  const docs = (await readdir(new URL('docs/', ROOT))).filter((name) => name.endsWith('.md'))
  return ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'sdk/README.md', ...docs.map((name) => `docs/${name}`)]
}
