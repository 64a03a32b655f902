import { access } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { ROOT } from './gamenet.js'

const SHARED = new URL('../shared/data/', ROOT)
const SAMPLES = new URL('deploy/demo/samples/', ROOT)

/** Path of a file of the folder of recorded facts beside the project; undefined where that folder is absent. */
export async function sharedFile(name: string): Promise<string | undefined> {
  const path = fileURLToPath(new URL(name, SHARED))
  return access(path).then(
    () => path,
    () => undefined
  )
}

/** Path of a recorded file: that of the folder beside the project, else the sample that is shipped. Says which. */
export async function recordedFile(t: Test, name: string): Promise<string> {
  const shared = await sharedFile(name)
  const path = shared ?? fileURLToPath(new URL(name, SAMPLES))
  t.comment(shared === undefined ? `${name}: NO ../shared/data, so the shipped sample is read` : `${name}: ${path}`)
  return path
}
