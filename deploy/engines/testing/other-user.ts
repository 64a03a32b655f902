import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Belongs to nobody: most systems have no user of this number, nor a name for it. */
export const OTHER_USER = 1234

/**
 * Runs a script of ES modules as another user, for tests that root runs. Returns what it printed; rejects unless it ends with 0. It begins
 * as root, which alone may reach the program, or even Node, in a private folder: modules that the script needs are imported then, and
 * are its array `loaded`.
 */
export const runAsOther = async (
  modules: readonly URL[],
  script: string
): Promise<{ stdout: string; stderr: string }> => {
  const source = `
    const loaded = []
    for (const url of ${JSON.stringify(modules)}) loaded.push(await import(url))
    process.setgroups([])
    process.setgid(${OTHER_USER})
    process.setuid(${OTHER_USER})
    ${script}`
  return await promisify(execFile)(process.execPath, ['--input-type=module', '-e', source])
}
