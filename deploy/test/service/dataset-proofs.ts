import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { z } from 'zod'
import { type Environment, gamenetJson, type Opened, openGamenet } from './gamenet.js'

const Revision = z.object({ revision: z.int(), url: z.string(), rows: z.int(), bytes: z.int() })
const File = z.object({
  period: z.string(),
  url: z.string(),
  isClosed: z.boolean(),
  newest: Revision.nullable(),
  earlier: z.array(Revision)
})
const Datasets = z.object({ datasets: z.array(z.object({ name: z.string(), files: z.array(File) })) })

/** Reads the list of datasets. */
export async function datasetsOf(apiUrl: string): Promise<z.infer<typeof Datasets>['datasets']> {
  return Datasets.parse(await (await fetch(`${apiUrl}/api/data`)).json()).datasets
}

/** Reads the files of all closed months; returns the SHA-256 of their bytes by address. */
export async function closedFiles(apiUrl: string): Promise<Record<string, string>> {
  const hashes: Record<string, string> = {}
  for (const { files } of await datasetsOf(apiUrl)) {
    for (const { url, isClosed } of files) {
      if (!isClosed) continue
      const answer = await fetch(apiUrl + url)
      if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`)
      hashes[url] = createHash('sha256')
        .update(Buffer.from(await answer.arrayBuffer()))
        .digest('hex')
    }
  }
  return hashes
}

/**
 * Rebuilds projections from the log, restarts the service, and requires that the files of closed months are written again with
 * the same bytes.
 * @returns the service that runs afterwards
 */
export async function provesSameBytes(
  t: Test,
  environment: Environment,
  running: Opened,
  projections: readonly string[]
): Promise<Opened> {
  const before = await closedFiles(running.apiUrl)
  for (const projection of projections) {
    await gamenetJson(environment, ['rebuild', 'start', projection, '--from-log', '--follow'])
    for (const step of ['verify', 'swap', 'drop']) await gamenetJson(environment, ['rebuild', step, projection])
  }
  t.same(await closedFiles(running.apiUrl), before, 'files are kept')
  await running.stop()
  await rm(join(environment.DATA_DIR ?? '', 'datasets'), { recursive: true })
  const again = await openGamenet(t, environment)
  t.same(await closedFiles(again.apiUrl), before, 'files made again have the same bytes')
  t.comment(`${Object.keys(before).length} files of closed months, ${projections.length} rebuilds`)
  return again
}
