import { readFile } from 'node:fs/promises'
import { CannotMeasure } from './measurement.js'

/*
 * Memory and processor time of a process on Linux, from proc(5). Sizes are in bytes, times in milliseconds.
 */

/** USER_HZ, 100 on every Linux that Node runs on: ticks a second in /proc/<pid>/stat. */
const TICK_MS = 10

/** Resident memory of a process. */
export const residentBytes = (pid: number): Promise<number> => sizeOf('VmRSS', pid)

/** The maximum of its resident memory since it started. */
export const peakBytes = (pid: number): Promise<number> => sizeOf('VmHWM', pid)

async function sizeOf(name: string, pid: number): Promise<number> {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(await read(`/proc/${pid}/status`))
  if (line === null) throw new CannotMeasure(`/proc/${pid}/status has no ${name}; memory is measured on Linux only`)
  return Number(line[1]) * 1024
}

/** Processor time of all threads since the start of the process, user and system. */
export async function processorMs(pid: number): Promise<number> {
  const stat = await read(`/proc/${pid}/stat`)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

/** Processor time of the main thread only, more precise than {@link processorMs}. */
export async function mainThreadMs(pid: number): Promise<number> {
  const [nanoseconds = ''] = (await read(`/proc/${pid}/task/${pid}/schedstat`)).split(' ')
  return Number(nanoseconds) / 1e6
}

async function read(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => {
    throw new CannotMeasure(`${path} cannot be read; memory and processor time are measured on Linux only`)
  })
}

/** Samples the resident memory of a process; `stop` returns the maximum. */
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
