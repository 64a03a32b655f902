import { access, constants, stat } from 'node:fs/promises'
import { bytesText, messageWithCause, millisecondsOf } from '@gamenet/schemas'
import { z } from 'zod'
import { FailureError } from '../../config.js'
import { FULL_BYTES } from '../../data-directory/disk-guard.js'
import { freeText } from '../../data-directory/disk-space.js'
import { readOnlySentence } from '../../data-directory/file-failure.js'
import type { Engines } from '../../stores/engines.js'
import { NoInput, type OperationNeeds, operation } from '../operation.js'
import { CLOCK_SECONDS_MAX, status } from '../status/operation.js'

const Check = z.object({
  check: z.string(),
  isOk: z.boolean(),
  /** What was found; of a failed check also what to do. */
  found: z.string()
})
export type Check = z.infer<typeof Check>

/** Checks what a service needs from its machine and engines. Changes nothing. */
export const doctor = operation({
  name: 'doctor',
  route: 'GET /doctor',
  input: NoInput,
  result: z.array(Check),
  run: async (needs, _, context) => {
    const { engines } = needs
    const checks: Readonly<Record<string, () => Promise<string>>> = {
      log: async () => `${engines.names.log}: ${(await engines.log.extents('scrape')).length} partitions of scrape`,
      tables: async () => `${nameOf(engines, 'tables')} ${await versionOf(engines)}${processOf(engines)}`,
      'write side': async () => {
        const writes = await engines.writes()
        await writes.check()
        const deaf = writes.stats?.().deafListeners ?? 0
        return deaf === 0 ? 'answers' : `answers; ${deaf} listeners get no notifications and poll (POSTGRES_LISTEN_URL)`
      },
      permissions: () => permissionsOf(engines),
      disk: async () => await diskOf(engines),
      clock: async () =>
        await clockOf(needs, (await status.run(needs, {}, { ...context, onProgress: () => undefined })).sources),
      ...needs.state.checks
    }
    return await Promise.all(Object.entries(checks).map(([check, run]) => checked(check, run)))
  }
})

/** Returns the result of a check. */
async function checked(check: string, run: () => Promise<string>): Promise<Check> {
  try {
    return { check, isOk: true, found: await run() }
  } catch (error) {
    return { check, isOk: false, found: messageWithCause(error) }
  }
}

const nameOf = ({ names }: Engines, role: string): string => names[role] ?? role

async function versionOf({ clickhouse }: Engines): Promise<string> {
  const [row] = await clickhouse.control.rows('SELECT version() AS version')
  return String(row?.version)
}

/** Says of an embedded ClickHouse what confines it. */
function processOf({ clickhouse }: Engines): string {
  const found = clickhouse.process?.()
  if (found === undefined) return ''
  const confined =
    found.landlock > 0
      ? `confined to its files by Landlock ${found.landlock}`
      : 'not confined to its files: this kernel has no Landlock 2'
  return `; process ${found.pid ?? 'none'}, started again ${found.restarts} times, ${confined}`
}

async function permissionsOf({ directory }: Engines): Promise<string> {
  if (directory === undefined) return 'no engine has files here'
  const { path } = directory
  const user = process.getuid?.()
  await access(path, constants.W_OK | constants.X_OK)
  const { uid, mode } = await stat(path)
  if (uid !== user)
    throw new FailureError(`${path} belongs to user ${uid}, and the service runs as ${user}: chown -R it.`)
  if ((mode & 0o077) !== 0)
    throw new FailureError(
      `${path} has the mode ${(mode & 0o777).toString(8)}, and others may read its keys: chmod 700 it.`
    )
  return `${path} is writable, and private`
}

async function diskOf({ disk }: Engines): Promise<string> {
  const disks = await disk.look()
  const low = disks.find(({ isLow, isFull }) => isLow || isFull)
  if (low?.isReadOnly) throw new FailureError(readOnlySentence(low.path, low.path))
  if (low !== undefined)
    throw new FailureError(
      `${low.path} has ${freeText(low)}, and ${bytesText(Math.max(low.freeMinBytes, FULL_BYTES))} must stay free: ` +
        `docs/operators/disk.md says what to free.`
    )
  return disks.length === 0
    ? 'no engine has files here'
    : disks.map((disk) => `${disk.path} has ${freeText(disk)}`).join(', ')
}

/** Compares this clock with the engines' and with the newest runs of scrapes. */
async function clockOf(
  { engines }: OperationNeeds,
  sources: readonly { readonly source: string; readonly lastRun: { readonly observedAt: string } | null }[]
): Promise<string> {
  const begunMs = Date.now()
  const [row] = await engines.clickhouse.control.rows('SELECT toUnixTimestamp64Milli(now64(3)) AS ms')
  const known = [
    { what: `the clock of ${nameOf(engines, 'tables')}`, ms: Number(row?.ms) },
    ...sources.flatMap(({ source, lastRun }) =>
      lastRun === null ? [] : [{ what: `the last run of ${source}`, ms: millisecondsOf(lastRun.observedAt) }]
    )
  ]
  const endedMs = Date.now()
  const limitMs = CLOCK_SECONDS_MAX * 1000
  const ahead = known.find(({ ms }) => ms > endedMs + limitMs)
  const wrong = ahead ?? known.slice(0, 1).find(({ ms }) => ms < begunMs - limitMs)
  if (wrong === undefined) return `agrees with ${known.length} others`
  const seconds = Math.round((wrong.ms - endedMs) / 1000)
  throw new FailureError(
    `${wrong.what} is ${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'} this machine: let NTP set both.`
  )
}
