import { CleanSession } from '../src/clickhouse/clean-session.js'
import { stringLiteral } from '../src/clickhouse/parameters.js'

/** A request for the first mutations of a statement by a seed. */
export type Fuzz = { readonly statement: string; readonly seed: number; readonly count: number }

/* Mutates statements with the engine's fuzzer. Answers a message `Fuzz` with the mutations; none if the engine cannot parse the text. */

const session = new CleanSession(process.argv[2] ?? '', ['--async_load_databases=0'])
process.on('message', (message) => void answer(message as Fuzz))
process.once('disconnect', () => process.exit())

async function answer({ statement, seed, count }: Fuzz): Promise<void> {
  const fuzz = `SELECT f.query FROM fuzzQuery(${stringLiteral(statement)}, 2000, ${seed}) AS f LIMIT ${count} SETTINGS max_block_size = ${count}`
  const mutations = await session.query(fuzz, 'JSONCompactEachRow').then(
    (found) =>
      found
        .text()
        .trim()
        .split('\n')
        .map((line) => String(JSON.parse(line)[0])),
    () => []
  )
  process.send?.(mutations)
}
