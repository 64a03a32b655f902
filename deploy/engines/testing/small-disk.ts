import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Returns the path of a new, really small file system, perhaps with few inodes; undefined if this user may not mount one. */
export async function smallDisk(
  t: { teardown(end: () => unknown): void },
  megabytes: number,
  inodes?: number
): Promise<string | undefined> {
  const path = await mkdtemp(join(tmpdir(), 'gamenet-small-disk-'))
  try {
    execFileSync(
      'mount',
      ['-t', 'tmpfs', '-o', `size=${megabytes}m${inodes === undefined ? '' : `,nr_inodes=${inodes}`}`, 'tmpfs', path],
      { stdio: 'ignore' }
    )
  } catch {
    await rm(path, { recursive: true })
    return undefined
  }
  t.teardown(async () => {
    execFileSync('umount', ['-l', path])
    await rm(path, { recursive: true })
  })
  return path
}
