import { stringLiteral } from '../src/clickhouse/parameters.js'
import { startClickHouseServer } from '../testing/clickhouse-server.js'

/** A request for the first mutations of a statement by a seed. */
export type Fuzz = { readonly statement: string; readonly seed: number; readonly count: number }

/* Mutates statements with the engine's fuzzer. Answers a message `Fuzz` with the mutations; none if the engine cannot parse the text. */

const { ask } = await startClickHouseServer({ path: process.argv[2] ?? '' })
process.on('message', (message) => void answer(message as Fuzz))
process.once('disconnect', () => process.exit())

async function answer({ statement, seed, count }: Fuzz): Promise<void> {
  const fuzz = `SELECT f.query FROM fuzzQuery(${stringLiteral(statement)}, 2000, ${seed}) AS f LIMIT ${count} SETTINGS max_block_size = ${count}`
  const mutations = await ask(fuzz, { format: 'JSONCompactEachRow' }).then(
    ({ bytes }) =>
      new TextDecoder()
        .decode(bytes)
        .trim()
        .split('\n')
        .map((line) => String(JSON.parse(line)[0])),
    () => []
  )
  process.send?.(mutations)
}
