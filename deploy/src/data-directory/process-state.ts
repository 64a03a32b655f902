import { readdir, readFile } from 'node:fs/promises'
import { errorCode } from '@gamenet/schemas'

/** PF_EXITING of the flags in /proc/PID/stat: the kernel is tearing the process down. */
const EXITING = 0x4
/** SIGKILL (9) in the masks of pending signals in /proc/PID/status. */
const KILL_PENDING = 1n << 8n

/** A process id can be reused; with the start time it identifies one process. */
export type ProcessIdentity = { readonly pid: number; readonly startedAt: string }

/** `dying`: killed or exiting; it will not run again, but still holds its files and locks. */
export type ProcessState = 'running' | 'dying' | 'ended'

/** Returns the start of a process in clock ticks since boot (field 22 of proc(5) stat); empty if there is no /proc. */
export const startOf = async (pid: number): Promise<string> => statFields(await readProc(pid, 'stat'))[19] ?? ''

/** Returns whether a process has this id. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}

export async function stateOf({ pid, startedAt }: ProcessIdentity): Promise<ProcessState> {
  if (!isRunning(pid)) return 'ended'
  const [stat, status] = await Promise.all([readProc(pid, 'stat'), readProc(pid, 'status')])
  if ((statFields(stat)[19] ?? '') !== startedAt) return 'ended'
  const threads = await readdir(`/proc/${pid}/task`).catch(() => [])
  return stateFrom(stat, status, threads.length)
}

/**
 * Returns the state of a process from its /proc/PID/stat, /proc/PID/status and number of threads. A zombie without
 * other threads has released its files; other threads still hold them.
 */
export function stateFrom(stat: string, status: string, threads: number): ProcessState {
  const [state = '', , , , , , flags = '0'] = statFields(stat)
  if (/^[ZX]/.test(state)) return threads > 1 ? 'dying' : 'ended'
  if ((Number(flags) & EXITING) !== 0) return 'dying'
  const pending = [...status.matchAll(/^S(?:ig|hd)Pnd:\s*([0-9a-f]+)$/gm)]
  return pending.some(([, mask]) => (BigInt(`0x${mask}`) & KILL_PENDING) !== 0n) ? 'dying' : 'running'
}

/** Returns the fields after the command name, which may contain spaces and parentheses; the first one is the state. */
const statFields = (stat: string): string[] => stat.slice(stat.lastIndexOf(')') + 2).split(' ')

async function readProc(pid: number, file: string): Promise<string> {
  return await readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')
}
