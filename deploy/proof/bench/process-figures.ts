import { readFile } from 'node:fs/promises'
import { CannotMeasure } from './measurement.js'

/*
 * Linux's figures of a process: proc(5). All sizes in bytes, all times in milliseconds.
 */

/** USER_HZ, 100 on every Linux that Node runs on: ticks a second in /proc/<pid>/stat. */
const TICK_MS = 10

/** Memory that a process holds now. */
export async function residentBytes(pid: number): Promise<number> {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(await read(`/proc/${pid}/status`))
  if (line === null) throw new CannotMeasure(`/proc/${pid}/status tells no VmRSS; memory is measured on Linux only`)
  return Number(line[1]) * 1024
}

/** Processor time that a process has used since its start, user and system. */
export async function processorMs(pid: number): Promise<number> {
  const stat = await read(`/proc/${pid}/stat`)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

/** Processor time of the main thread alone, exact to the microsecond: for work that other threads have no part in. */
export async function mainThreadMs(pid: number): Promise<number> {
  const [nanoseconds = ''] = (await read(`/proc/${pid}/task/${pid}/schedstat`)).split(' ')
  return Number(nanoseconds) / 1e6
}

async function read(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => {
    throw new CannotMeasure(`${path} cannot be read; memory and processor time are measured on Linux only`)
  })
}

/** Watches the memory of a process until stopped; then the most that it held. */
export function watchResident(pid: number, everyMs: number): { stop(): Promise<number> } {
  const stopping = new AbortController()
  const watching = (async () => {
    let most = 0
    while (!stopping.signal.aborted) {
      most = Math.max(most, await residentBytes(pid))
      await new Promise((resolve) => setTimeout(resolve, everyMs))
    }
    return most
  })()
  return {
    stop: () => {
      stopping.abort()
      return watching
    }
  }
}
