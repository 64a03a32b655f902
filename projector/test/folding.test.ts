import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { test } from 'tap'

const FOLDING = new URL('../src/folding/folding.js', import.meta.url)

test('a process that waits only for a fold runs until it has the rows, and then ends by itself', async (t) => {
  const program = `
    import { foldInThread } from ${JSON.stringify(FOLDING.href)}
    const folding = foldInThread()
    for (const n of [1, 2]) console.log(n, JSON.stringify(await folding.fold('leaderboard-entry', {})))
    await folding.fold('none', {}).catch((error) => console.log(error.message))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
  t.same(stdout.trim().split('\n'), ['1 {}', '2 {}', 'There is no fold none in folds.ts.'])
})
