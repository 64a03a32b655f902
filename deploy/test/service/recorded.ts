import { access } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { ROOT } from './gamenet.js'

const SHARED = new URL('../shared/data/', ROOT)
const SAMPLES = new URL('deploy/demo/samples/', ROOT)

/**
 * Returns the path of a file in the folder of recorded data next to the project; undefined if the folder is missing.
 */
export async function sharedFile(name: string): Promise<string | undefined> {
  const path = fileURLToPath(new URL(name, SHARED))
  return access(path).then(
    () => path,
    () => undefined
  )
}

/** Returns the path of a recorded file: in the folder next to the project, else the shipped sample; reports which. */
export async function recordedFile(t: Test, name: string): Promise<string> {
  const shared = await sharedFile(name)
  const path = shared ?? fileURLToPath(new URL(name, SAMPLES))
  t.comment(shared === undefined ? `${name}: NO ../shared/data, so the shipped sample is read` : `${name}: ${path}`)
  return path
}
