import { mkdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { DemoAuth } from '../../../demo/auth/server.js'
import { backup } from '../../../src/operate/backup/operation.js'
import type { ErasureProgress } from '../../../src/operate/erase/erasure-report.js'
import { erase } from '../../../src/operate/erase/operation.js'
import { scrape } from '../../../src/operate/scrape/operation.js'
import type { Running } from '../../../test/service/gamenet.js'
import { operationsAt } from '../../../test/service/gamenet.js'
import { Caller, signIn } from '../../../test/service/people-service.js'
import type { Load } from '../load.js'
import { chance, wholeChance } from '../world.js'

/** Activities during a power cut, in addition to the load. */
export const activities = [
  'migration',
  'import',
  'boards',
  'rating',
  'rebuild',
  'backup',
  'erasure',
  'restart'
] as const
export type Activity = (typeof activities)[number]

/** Acknowledged work that a cut must not undo. */
export type Promised = {
  /** How many backups have begun, each in place of the one before. */
  backups: number
  /** Whether the last of them was acknowledged. */
  hasBackup: boolean
  /** The users whose erasure has begun, and whether it was acknowledged. */
  erased: { readonly username: string; isAcknowledged: boolean }[]
}

export type Scene = {
  readonly service: Running
  readonly load: Load
  readonly auth: DemoAuth
  /** Seeds of the random choices. */
  readonly numbers: readonly number[]
  /** The directory of the backup, on the disk that is cut. */
  readonly backup: string
  readonly promised: Promised
}

const WRITERS = 6
const ERASED_MAX = 100
const REBUILD_STEPS_MAX = 3
/** Slightly longer than each activity takes; of an erasure, either phase. */
const MS_MAX = { import: 500, boards: 400, rating: 40, rebuild: 400, backup: 2500, erasure: 2500, restart: 1500 }

/** Begins an activity; resolves in the middle of it, or shortly after its end. */
export async function beginActivity(activity: Exclude<Activity, 'migration'>, scene: Scene): Promise<void> {
  const { service, load, auth, numbers } = scene
  const operations = operationsAt(service.operatorUrl)
  await pause(200 + chance(...numbers, 1) * 600)
  if (activity === 'import') await load.begun('import')
  else if (activity === 'rating') await load.begun(auth.people[wholeChance(WRITERS, ...numbers, 2)]?.username ?? '')
  else if (activity === 'rebuild') {
    for (let step = wholeChance(REBUILD_STEPS_MAX, ...numbers, 2); step >= 0; step -= 1) await load.begun('rebuild')
  } else if (activity === 'boards') operations.run(scrape, { source: 'boards' }).catch(() => undefined)
  else if (activity === 'restart') service.process.kill('SIGTERM')
  else if (activity === 'backup') await beginBackup(scene)
  else await beginErasure(scene)
  // Squared, so that most cuts are early, when more work is unfinished.
  await pause(chance(...numbers, 3) ** 2 * MS_MAX[activity])
}

async function beginBackup({ service, backup: directory, promised }: Scene): Promise<void> {
  promised.backups += 1
  promised.hasBackup = false
  const { backups } = promised
  await rm(directory, { recursive: true, force: true })
  await mkdir(dirname(directory), { recursive: true })
  operationsAt(service.operatorUrl)
    .run(backup, { directory })
    .then(
      () => {
        // An earlier one that ends late was removed.
        promised.hasBackup ||= backups === promised.backups
      },
      () => undefined
    )
}

/** Creates a user who writes nothing else, and begins the erasure; resolves when it deletes keys, or rows. */
async function beginErasure({ service, auth, numbers, promised }: Scene): Promise<void> {
  const others = auth.people
    .slice(WRITERS, WRITERS + ERASED_MAX)
    .filter(({ username }) => promised.erased.every((each) => each.username !== username))
  const somebody = others[wholeChance(others.length, ...numbers, 4)]
  const other = auth.people[0]?.username
  if (somebody === undefined) throw new Error('no user can be erased')
  const { username } = somebody
  const caller = new Caller(service, 1)
  try {
    const me = await signIn(auth, somebody)
    for (const [method, path, body] of [
      ['PATCH', `/api/profile/${username}`, { bio: 'soon erased' }],
      ['POST', `/api/profile/${other}/reputation`, { stars: 1, comment: 'soon erased' }]
    ] as const) {
      const { status } = await caller.ask(method, path, me, body)
      // Only users who have written can be rated.
      if (status !== 200 && status !== 404) throw new Error(`${method} ${path} of the user to be erased: ${status}`)
    }
  } finally {
    await caller.close()
  }
  const erased = { username, isAcknowledged: false }
  promised.erased.push(erased)
  // Rows are deleted ten seconds after the keys.
  const awaited = chance(...numbers, 5) < 0.5 ? 'keys' : 'tables'
  await new Promise<void>((resolve) => {
    const onProgress = ({ phase }: ErasureProgress) => phase === awaited && resolve()
    operationsAt(service.operatorUrl)
      .run(erase, { username, anyway: false }, { onProgress })
      .then(
        () => {
          erased.isAcknowledged = true
        },
        () => undefined
      )
      .finally(resolve)
  })
}

/** Returns the promises that a cut has broken. */
export async function broken(promised: Promised, { operatorUrl }: Pick<Running, 'operatorUrl'>): Promise<string[]> {
  const found: string[] = []
  for (const { username, isAcknowledged } of promised.erased) {
    const { wasKnown, isEntered } = await operationsAt(operatorUrl).run(erase, { username, anyway: true })
    if (isAcknowledged && wasKnown) found.push(`${username} was erased but exists again`)
    if (!isEntered) found.push(`${username} was erased but is not in the ledger`)
  }
  return found
}
