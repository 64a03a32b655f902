import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { AUTHORIZED, gamenetJson, type Running, startGamenet } from '../../test/service/gamenet.js'
import { figure, type Measurement, type Result } from './measurement.js'
import { peakBytes, processorMs, residentBytes } from './process-figures.js'

const START_SECONDS_MAX = 10
const IDLE_MS = 30_000
const MEMORY_MIB_MAX = 800
const PEAK_MIB_MAX = 1100
const IDLE_PERCENT_MAX = 5
const FILLED_WITHIN_MS = 400_000
const POLL_MS = 25
const MIB = 1024 * 1024

/** What `npm start` adds to the environment. */
const { ENVIRONMENT: SUPERVISED } = z
  .object({ ENVIRONMENT: z.record(z.string(), z.string()) })
  .parse(createRequire(import.meta.url)('../../../supervise.cjs'))

const Progress = z.object({ background: z.array(z.object({ done: z.int(), total: z.int() })) })

/** The service with its demo network, as `npm start` runs it in a built clone. */
export const start: Measurement = {
  name: 'start',
  claim: 'a start answers within 10 s, and an idle service with its history takes at most 800 MiB',
  async run({ scale, directory, note }) {
    const dataDirectory = await mkdtemp(join(directory, 'data-'))
    const environment = { ...SUPERVISED, DATA_DIR: dataDirectory }
    const results: Result[] = []
    try {
      const first = await timedStart(environment)
      results.push(startResult('on an empty directory', first))
      if (scale < 1) note('the history and the idle time have their full size at any scale')
      const filledMs = await waitUntilFilled(first.service)
      note(`the demo's history was readable ${figure(filledMs / 1000)} s after the start`)
      results.push(...(await idleResults(first.service)))
      await first.service.stop()
      const second = await timedStart(environment)
      results.push(startResult('on a filled directory', second))
      await second.service.stop()
      return results
    } finally {
      await rm(dataDirectory, { recursive: true, force: true })
    }
  }
}

type Started = { readonly service: Running; readonly firstAnswerMs: number }

/** Starts the service; measures the time to its first answer about the demo's titles. */
async function timedStart(environment: Readonly<Record<string, string>>): Promise<Started> {
  const begun = performance.now()
  const service = await startGamenet(environment)
  for (;;) {
    const response = await fetch(`${service.apiUrl}/api/online-users`)
    await response.arrayBuffer()
    if (response.status === 200) return { service, firstAnswerMs: performance.now() - begun }
    await pause(POLL_MS)
  }
}

function startResult(where: string, { firstAnswerMs }: Started): Result {
  return {
    what: `first answer after a start ${where}`,
    measured: firstAnswerMs / 1000,
    unit: 's',
    target: { bound: 'at most', value: START_SECONDS_MAX, of: 'measured' }
  }
}

async function waitUntilFilled(service: Running): Promise<number> {
  const begun = performance.now()
  for (;;) {
    const status = Progress.parse(await (await fetch(`${service.operatorUrl}/status`, { headers: AUTHORIZED })).json())
    const isFilled = status.background.length > 0 && status.background.every((work) => work.done >= work.total)
    if (isFilled) break
    if (performance.now() - begun > FILLED_WITHIN_MS) throw new Error(`not filled: ${JSON.stringify(status)}`)
    await pause(500)
  }
  await gamenetJson({ OPERATOR_URL: service.operatorUrl }, ['status', '--wait', '120'])
  return performance.now() - begun
}

async function idleResults({ process }: Running): Promise<Result[]> {
  const pid = process.pid ?? 0
  const peak = await peakBytes(pid)
  // Merges of the loaded history and collections of its garbage end in this time.
  await pause(IDLE_MS)
  const restBytes = await residentBytes(pid)
  const cpuBefore = await processorMs(pid)
  await pause(IDLE_MS)
  const used = (await processorMs(pid)) - cpuBefore
  return [
    {
      what: 'memory while the history is loaded, maximum',
      measured: peak / MIB,
      unit: 'MiB',
      target: { bound: 'at most', value: PEAK_MIB_MAX, of: 'measured' }
    },
    {
      what: `memory after the history and ${figure(IDLE_MS / 1000)} s idle`,
      measured: restBytes / MIB,
      unit: 'MiB',
      target: { bound: 'at most', value: MEMORY_MIB_MAX, of: 'measured' }
    },
    {
      what: 'processor then, of one core',
      measured: (100 * used) / IDLE_MS,
      unit: '%',
      target: { bound: 'at most', value: IDLE_PERCENT_MAX, of: 'measured' }
    }
  ]
}
