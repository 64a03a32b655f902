import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/*
 * claim     a sentence that the service promises; CONTRIBUTING.md lists them with the one test that shows each
 * mutation  a patch of the program that breaks one claim: its first line is the claim
 */

/** A line of the table of claims. */
export type Claim = {
  /** Name of the mutation, without `.patch`. */
  readonly mutation: string
  readonly claim: string
  /** Path of the test file from the root. */
  readonly test: string
}

const FOLDER = 'deploy/proof/mutations'
const ROW = /^\| `(\d\d-[a-z0-9-]+)` \| (.+) \| `(\S+\.test\.ts)` \|$/gm

/** Reads the table of claims below a root. */
export function readClaims(root: string): Claim[] {
  const text = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
  return [...text.matchAll(ROW)].map(([, mutation = '', claim = '', test = '']) => ({ mutation, claim, test }))
}

/** Returns the path of a mutation from the root. */
export function patchOf(mutation: string): string {
  return join(FOLDER, `${mutation}.patch`)
}

/** Returns what is wrong with the table: each claim has a mutation with the same sentence and a test that exists. */
export function faultsOf(root: string, claims: readonly Claim[]): string[] {
  const patches = readdirSync(join(root, FOLDER)).flatMap((name) => /^(.+)\.patch$/.exec(name)?.[1] ?? [])
  const listed = new Set(claims.map(({ mutation }) => mutation))
  const unlisted = patches.filter((name) => !listed.has(name)).map((name) => `${name} is not in the table of claims`)
  const faults = claims.flatMap(({ mutation, claim, test }) => {
    if (!patches.includes(mutation)) return [`${mutation} is in the table of claims, and there is no such mutation`]
    const [sentence] = readFileSync(join(root, patchOf(mutation)), 'utf8').split('\n')
    return [
      ...(sentence === claim
        ? []
        : [`${mutation} begins with ${JSON.stringify(sentence)}, the table has the claim ${claim}`]),
      ...(existsSync(join(root, test)) ? [] : [`the test of ${mutation} is ${test}, which does not exist`])
    ]
  })
  return [...unlisted, ...faults]
}
