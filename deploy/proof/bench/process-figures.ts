import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { CannotMeasure } from './measurement.js'

/*
 * Memory and processor time on Linux, from proc(5), of a process and all that it has started: the embedded ClickHouse is
 * one of them. Sizes are in bytes, times in milliseconds.
 */

/** USER_HZ, 100 on every Linux that Node runs on: ticks a second in /proc/<pid>/stat. */
const TICK_MS = 10

/** Resident memory; a page that several processes have is counted once. */
export const residentBytes = (pid: number): Promise<number> => sumOf(pid, (each) => sizeOf('Pss', each, 'smaps_rollup'))

/** The sum of the maxima of resident memory since each process started, which it may have had at different instants. */
export const peakBytes = (pid: number): Promise<number> => sumOf(pid, (each) => sizeOf('VmHWM', each, 'status'))

/** Processor time of all threads since the start of the processes, user and system. */
export const processorMs = (pid: number): Promise<number> =>
  sumOf(pid, async (each) => {
    const stat = await read(`/proc/${each}/stat`)
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS
  })

async function sizeOf(name: string, pid: number, file: string): Promise<number> {
  const line = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(await read(`/proc/${pid}/${file}`))
  if (line === null) throw new CannotMeasure(`/proc/${pid}/${file} has no ${name}; memory is measured on Linux only`)
  return Number(line[1]) * 1024
}

/** The main thread starts all processes. */
async function sumOf(pid: number, figureOf: (pid: number) => Promise<number>): Promise<number> {
  const children = (await read(`/proc/${pid}/task/${pid}/children`)).split(' ').map(Number)
  const figures = children.filter((child) => child > 0).map((child) => sumOf(child, figureOf))
  return (await Promise.all([figureOf(pid), ...figures])).reduce((sum, each) => sum + each)
}

/** Processor time of the main thread of one process only, more precise than {@link processorMs}. */
export async function mainThreadMs(pid: number): Promise<number> {
  const [nanoseconds = ''] = (await read(`/proc/${pid}/task/${pid}/schedstat`)).split(' ')
  return Number(nanoseconds) / 1e6
}

async function read(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => {
    throw new CannotMeasure(`${path} cannot be read; memory and processor time are measured on Linux only`)
  })
}

/** Returns the maximum of the resident memory of a process until the work has ended. */
export async function residentDuring(pid: number, everyMs: number, work: Promise<unknown>): Promise<number> {
  let [most, isOver] = [0, false]
  const ended = work.finally(() => {
    isOver = true
  })
  while (!isOver) {
    most = Math.max(most, await residentBytes(pid))
    await Promise.race([ended, pause(everyMs)])
  }
  return most
}
