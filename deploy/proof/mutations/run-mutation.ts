import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Claim, patchOf } from './claims.js'

/** Built in the copy, or of no use there. */
const NOT_COPIED = ['node_modules', '.git', '.tap', '.campaign', '.turbo', 'data']
const TEST_MS_MAX = 900_000

/** The result of one mutation. `foundBy`: the first test that failed; undefined if none did. */
export type Tried = { readonly mutation: string; readonly foundBy?: string }

/** Copies the program below `root`, with its build, to a directory of the same disk. */
export function copyProgram(root: string, copy: string): void {
  rmSync(copy, { recursive: true, force: true })
  cpSync(root, copy, {
    recursive: true,
    preserveTimestamps: true,
    filter: (path) => path === root || !NOT_COPIED.includes(basename(path))
  })
  // Hard links: the compiler names the files of a package by their real paths. Links to our packages are relative, and
  // lead into the copy.
  execFileSync('cp', ['-al', join(root, 'node_modules'), copy])
  // Inside of a repository git applies no patch to files that it ignores.
  execFileSync('git', ['init', '--quiet'], { cwd: copy })
}

/** Builds the copy with one mutation, runs the test of its claim, and takes the mutation back. */
export function tryMutation(copy: string, { mutation, test }: Claim): Tried {
  const apply = (...options: string[]) => execFileSync('git', ['apply', ...options, patchOf(mutation)], { cwd: copy })
  apply()
  try {
    const file = test.replace('/test/', '/dist/test/').replace(/ts$/, 'js')
    const isCampaign = test.endsWith('.campaign.test.ts')
    const ran = spawnSync(process.execPath, ['deploy/launch.cjs', isCampaign ? 'campaign' : 'test', file], {
      cwd: copy,
      encoding: 'utf8',
      timeout: TEST_MS_MAX
    })
    if (ran.status === 0) return { mutation }
    const printed = `${ran.stdout}${ran.stderr}`
    const foundBy = failedTest(printed)
    if (foundBy === undefined) throw new Error(`${mutation} has no result of ${test}:\n${printed.slice(-2000)}`)
    return { mutation, foundBy }
  } finally {
    apply('--reverse')
  }
}

/** Returns the name of the first test that failed: the line after its check, which is indented less. */
function failedTest(printed: string): string | undefined {
  const failed = [...printed.matchAll(/^( *)not ok \d+ - (.*?)(?: # time=.*)?$/gm)]
  const depth = failed[0]?.[1]?.length ?? 0
  const test = failed.find(([, indent = '']) => indent.length < depth) ?? failed[0]
  return test?.[2]
}
