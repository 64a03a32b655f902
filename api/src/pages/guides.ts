import { readFile } from 'node:fs/promises'
import type { SampleValues } from './sample-values.js'
import { keyByCurl } from './samples.js'

/** A subject that every client of the API needs to know. `text` has the form that `paragraphs` reads. */
export type Guide = { readonly id: string; readonly title: string; readonly text: string }

/** Returns the path at which a service of a version serves its client, for `npm install`. */
export const sdkPath = (version: string): string => `/sdk/gamenet-sdk-${version}.tgz`

/** A section each: `# id: title`, then its text, in which `{{name}}` stands for a value. */
const TEXT = new URL('../../../src/pages/guides.md', import.meta.url)

/** Reads the guides at /docs, in reading order. `publicUrl` is the address of the service, `version` the program's. */
export async function guides(publicUrl: string, version: string, { named, signIn }: SampleValues): Promise<Guide[]> {
  const values: Readonly<Record<string, string>> = {
    publicUrl,
    sdk: sdkPath(version),
    titleId: String(named.titleId ?? '4d530064'),
    username: String(named.username ?? 'CalmOtter'),
    signIn: keyByCurl(signIn).replace(/^/gm, '    ')
  }
  const text = (await readFile(TEXT, 'utf8')).replace(/\{\{(\w+)\}\}/g, (_, name) => String(values[name]))
  return text.split(/^(?=# \w+: )/m).map((section) => {
    const [, id = '', title = '', body = ''] = /^# (\w+): ([^\n]*)\n\n(.*)$/s.exec(section) ?? []
    return { id, title, text: `\n${body.trimEnd()}` }
  })
}
