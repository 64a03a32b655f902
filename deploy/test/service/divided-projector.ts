import { setTimeout as pause } from 'node:timers/promises'
import { openPostgres } from '@gamenet/engines'
import { dividedPasses, postgresLocks } from '../../src/stores/divided-passes.js'

/*
 * A process that divides topics: `node divided-projector.js URL '{"program": 7, "topics": ["a"], "restMs": 1000}'`. It
 * prints a line of its topics for each change, and `stopped` for a pass that a check has ended.
 */

const [url = '', options = ''] = process.argv.slice(2)
const { program, topics, restMs, renewMs } = JSON.parse(options)
const postgres = openPostgres({ url })
const division = dividedPasses(postgresLocks(async () => postgres, { restMs, renewMs }))({ program, topics })
let said = ''
for (;;) {
  await division
    .run(
      () => 0,
      async (own) => {
        const names = topics.filter((topic: string) => own.has(topic)).join(' ')
        if (names !== said) process.stdout.write(`${names}\n`)
        said = names
        await pause(20)
        await own.check()
      }
    )
    .catch(() => {
      said = 'stopped'
      process.stdout.write('stopped\n')
    })
}
