import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { instantOf } from '@gamenet/schemas'
import { verify } from '../../src/operate/verify/operation.js'
import { operationsAt } from '../../test/service/gamenet.js'
import { loadAlone, startLoad } from './even-load.js'
import { figure, type Measurement, quantile, type Result, scaled } from './measurement.js'
import {
  importTitleCounts,
  importTitlesAndNetwork,
  minuteNow,
  type QuietService,
  startQuietService,
  startQuietServiceOn,
  titleIds
} from './quiet-service.js'

const COUNTS = 50_000_000
/** Sealed events do not compress. With names as long as allowed, in letters of three bytes, they fill the log to 2 GB. */
const COUNTS_PER_SIGHTING = 50
const LONG_NAME = '界'.repeat(200)
const SIGHTINGS_PER_FILE = 100_000
const PEOPLE = 5000
const IDLE_MS = 10_000
const BYTES_PER_SECOND = 200e6
const TIMES_IDLE = 2

const START_SECONDS_MAX = 10
const POLL_MS = 25

/** `gamenet verify` of the embedded service during 500 requests a second; then its start after a SIGKILL. */
export const verifySpeed: Measurement = {
  name: 'verify',
  claim:
    'gamenet verify reads 200 MB/s of a log and 50 M samples, answers take at most twice as long meanwhile, and a killed service answers within 10 s of its start',
  async run({ directory, scale, note }) {
    const service = await startQuietService(directory)
    try {
      const counts = scaled(COUNTS, scale, 20_000)
      note(`importing ${figure(counts)} counts`)
      await importTitlesAndNetwork(service, directory)
      await importTitleCounts(service, directory, Math.ceil(counts / titleIds.length))
      await importSightings(service, directory, Math.ceil(counts / COUNTS_PER_SIGHTING))
      note('requests to the idle service')
      const idle = await loadAlone(service, IDLE_MS)
      note('requests during the verification')
      const phases = new Map<string, { bytes: number; ms: number }>()
      let [bytesBefore, before] = [0, performance.now()]
      const busy = startLoad(service)
      const onProgress = ({ phase, bytes }: { phase: string; bytes: number }) => {
        const { bytes: read = 0, ms = 0 } = phases.get(phase) ?? {}
        const now = performance.now()
        phases.set(phase, { bytes: read + bytes - bytesBefore, ms: ms + now - before })
        bytesBefore = bytes
        before = now
      }
      const { bytes, tookMs, findings } = await operationsAt(service.operatorUrl).run(
        verify,
        { deep: false },
        { onProgress }
      )
      await busy.stop()
      if (findings.length > 0) throw new Error(`verify found damage: ${findings[0]?.what}`)
      const shares = [...phases].map(
        ([phase, { bytes, ms }]) => `${phase} ${figure(bytes / 1e6)} MB in ${figure(ms / 1000)} s`
      )
      return [
        {
          what: 'stored bytes checked',
          measured: (bytes / tookMs) * 1000,
          unit: 'bytes/s',
          target: { bound: 'at least', value: BYTES_PER_SECOND, of: 'measured' },
          detail: `${figure(bytes / 1e6)} MB in ${figure(tookMs / 1000)} s: ${shares.join(', ')}`
        },
        {
          what: 'an answer meanwhile, p99',
          measured: quantile(busy.times, 0.99),
          unit: 'ms',
          baseline: { what: 'idle', measured: quantile(idle.times, 0.99) },
          target: { bound: 'at most', value: TIMES_IDLE, of: 'ratio' },
          detail: `median ${figure(quantile(busy.times, 0.5))} ms, idle ${figure(quantile(idle.times, 0.5))} ms`
        },
        {
          what: 'requests that failed',
          measured: busy.failures.length + idle.failures.length,
          unit: '',
          target: { bound: 'at most', value: 0, of: 'measured' },
          detail: busy.failures[0] ?? idle.failures[0] ?? ''
        },
        await startAfterKill(service)
      ]
    } finally {
      await service.remove()
    }
  }
}

/** Time from the start of the process after a SIGKILL to its first answer with counts. */
async function startAfterKill(killed: QuietService): Promise<Result> {
  await killed.kill()
  const begun = performance.now()
  const service = await startQuietServiceOn(killed.dataDirectory)
  try {
    const path = `/api/title/${titleIds[0]}/online-users/history?hours=6`
    while (!(await fetch(`${service.apiUrl}${path}`)).ok) await pause(POLL_MS)
    return {
      what: 'first answer of a service that was killed',
      measured: (performance.now() - begun) / 1000,
      unit: 's',
      target: { bound: 'at most', value: START_SECONDS_MAX, of: 'measured' }
    }
  } finally {
    await service.stop()
  }
}

/** Imports sightings of users online, one per second up to now. */
async function importSightings(service: QuietService, directory: string, sightings: number): Promise<void> {
  const file = join(directory, 'sightings.csv')
  const firstMs = minuteNow() - sightings * 1000
  const rowOf = (n: number) =>
    `Player ${(n * 7919) % PEOPLE},${LONG_NAME},online,${LONG_NAME},${instantOf(firstMs + n * 1000)}\n`
  for (let first = 0; first < sightings; first += SIGHTINGS_PER_FILE) {
    const rows = Array.from({ length: Math.min(SIGHTINGS_PER_FILE, sightings - first) }, (_, n) => rowOf(first + n))
    await writeFile(file, `username,gamertag,state,game,observedAt\n${rows.join('')}`)
    await service.importFile('presence', file)
  }
}
