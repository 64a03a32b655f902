import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { HOSTILE_STATEMENTS } from '@gamenet/engines/testing'
import { request } from 'undici'
import { z } from 'zod'
import { spawnGamenet } from '../../test/service/gamenet.js'
import { concurrentAnswers } from './concurrent-answers.js'
import type { Measurement } from './measurement.js'
import { importTitleCounts, importTitlesAndNetwork, startQuietService } from './quiet-service.js'

const SQL_PASSWORD = 'password-of-benchmarks'
const SECONDS = 1
const ROUNDS = { rounds: 3, ms: 8000, timesIdle: 1.5 }
const FORBIDDEN = 403
/** Allowed statements that use processor time, memory or bytes until a limit stops them. */
const GREEDY = [
  'SELECT sum(cityHash64(number)) FROM numbers(1000000000000)',
  'SELECT count() FROM title_count AS a CROSS JOIN title_count AS b WHERE a.online < b.online',
  'SELECT groupArray(repeat(toString(number), 100)) FROM numbers(1000000000)',
  'SELECT toString(cityHash64(number)) FROM numbers(1000000)'
]

/** Statements sent to `gamenet sql --serve` one after the other: the hostile ones of the tests, then greedy ones. */
export const sqlApi: Measurement = {
  name: 'sql-api',
  claim: 'hostile statements slow answers of the service by at most half',
  async run({ directory, note }) {
    const service = await startQuietService(directory)
    let sqlServer: ChildProcess | undefined
    try {
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, 500)
      const args = ['sql', '--serve', '--port', '0', '--seconds', String(SECONDS), '--json']
      sqlServer = spawnGamenet({ DATA_DIR: service.dataDirectory, SQL_PASSWORD }, args)
      const [line] = await once(sqlServer.stdout ?? sqlServer, 'data')
      const { url } = z.object({ url: z.string() }).parse(JSON.parse(String(line)))
      const work = async (ms: number) => {
        const begun = performance.now()
        let refused = 0
        let greedy = 0
        for (const statement of HOSTILE_STATEMENTS) refused += (await run(url, statement)) === FORBIDDEN ? 1 : 0
        for (; performance.now() - begun < ms; greedy += 1) await run(url, GREEDY[greedy % GREEDY.length] ?? '')
        return `${refused} of ${HOSTILE_STATEMENTS.length} refused and ${greedy} greedy statements`
      }
      return await concurrentAnswers(service, [{ what: 'hostile statements', work }], ROUNDS, note)
    } finally {
      sqlServer?.kill('SIGTERM')
      await service.remove()
    }
  }
}

async function run(url: string, statement: string): Promise<number> {
  const headers = { 'X-ClickHouse-Key': SQL_PASSWORD }
  const { statusCode, body } = await request(url, { method: 'POST', headers, body: statement })
  await body.dump({ limit: Number.MAX_SAFE_INTEGER })
  return statusCode
}
