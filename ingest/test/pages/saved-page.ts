import { readFileSync } from 'node:fs'

/** A page of the folder of saved pages. */
export function savedPage(name: string): string {
  return readFileSync(new URL(`../../../test/saved-pages/${name}.html.txt`, import.meta.url), 'utf8')
}
