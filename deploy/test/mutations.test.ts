import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { faultsOf, patchOf, readClaims } from '../proof/mutations/claims.js'
import { ROOT } from './service/gamenet.js'

const root = fileURLToPath(ROOT)
const claims = readClaims(root)

test('each claim of CONTRIBUTING has a mutation and a test that exists', async (t) => {
  t.ok(claims.length > 0, 'there are claims')
  t.same(faultsOf(root, claims), [])
})

test('each mutation applies to the sources', async (t) => {
  for (const { mutation } of claims) {
    const { stderr } = spawnSync('git', ['apply', '--check', patchOf(mutation)], { cwd: root, encoding: 'utf8' })
    t.equal(stderr, '', `write ${mutation} again for the changed sources`)
  }
})
