import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { t } from 'tap'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PATCHES = readdirSync(join(ROOT, 'deploy/proof/mutations')).filter((name) => name.endsWith('.patch'))

t.test('every mutation applies to the sources', async (t) => {
  t.ok(PATCHES.length > 0, 'there are mutations')
  for (const name of PATCHES) {
    const check = () => execFileSync('git', ['apply', '--check', `deploy/proof/mutations/${name}`], { cwd: ROOT })
    t.doesNotThrow(check, `${name} applies; write it again for the changed sources if it does not`)
  }
})
