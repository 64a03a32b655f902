import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { readClaims } from '../proof/mutations/claims.js'
import { copyProgram, type Tried, tryMutation } from '../proof/mutations/run-mutation.js'
import { ROOT } from './service/gamenet.js'

const root = fileURLToPath(ROOT)
/** `CAMPAIGN_MUTATIONS` chooses mutations by a part of their name, divided by commas. */
const PARTS = process.env.CAMPAIGN_MUTATIONS?.split(',')

test('the test of each claim finds the mutation that breaks the claim', async (t) => {
  const directory = process.env.CAMPAIGN_DIRECTORY ?? t.testdir({})
  const copy = join(directory, 'copy')
  const file = join(directory, 'tried.json')
  const tried: Tried[] = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
  const isDone = (name: string) => tried.some(({ mutation, foundBy }) => mutation === name && foundBy !== undefined)
  const claims = readClaims(root).filter(({ mutation }) => PARTS?.some((part) => mutation.includes(part)) ?? true)
  copyProgram(root, copy)
  for (const claim of claims.filter(({ mutation }) => !isDone(mutation))) {
    tried.push(tryMutation(copy, claim))
    writeFileSync(file, JSON.stringify(tried))
  }
  for (const { mutation, claim, test } of claims) {
    const { foundBy } = tried.findLast((each) => each.mutation === mutation) ?? {}
    t.ok(foundBy !== undefined, `${mutation} is found by ${test}: ${claim}`)
    t.comment(`${mutation}: ${foundBy === undefined ? 'NOT FOUND' : `found by "${foundBy}"`} of ${test}`)
  }
})
