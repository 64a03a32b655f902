import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

/* A disk whose power can be cut: a sparse file with ext4 on a loop device. Needs root. */

export type Disk = {
  /** Where it is mounted. */
  readonly path: string
  /** Milliseconds since 1970. */
  readonly mountedMs: number
  mount(): void
  unmount(): void
  /** Cuts the power: nothing more is written to the disk. */
  cut(): void
  /** Makes it read-only, as the kernel does after an error of the disk. */
  fail(): void
  /** Copies the unmounted disk next to its image. */
  keep(): void
  /**
   * Copies the disk, as a cut at this instant would leave it, to another directory; returns the copy, unmounted. No process may
   * write to the disk meanwhile.
   */
  copyTo(directory: string): Disk
}

const MEBIBYTE = 2 ** 20
const UNMOUNT_TRIES_MAX = 50
const RETRY_MS = 100
const COPIES_MAX = 20
/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH flushes neither data nor journal. In perl, because Node has no ioctl. */
const SHUTDOWN = `use Fcntl; sysopen(my $directory, $ARGV[0], O_RDONLY) or die "open: $!";
  my $flags = pack("L", 2); ioctl($directory, 0x8004587D, $flags) or die "ioctl: $!"`
/**
 * `barrier=0`: a flush does not wait for the disk under the image, which is not cut. `noauto_da_alloc`: a file that is renamed
 * over another is not flushed implicitly, as on other file systems.
 */
const OPTIONS = 'loop,noatime,barrier=0,noauto_da_alloc'

const mounted = new Set<string>()

/** Deletes a directory's content and creates an empty, unmounted file system in it. */
export function makeDisk(directory: string, { mebibytes }: { mebibytes: number }): Disk {
  const disk = diskIn(directory)
  // A killed run may have left it mounted.
  tryIt(() => run('umount', '-l', disk.path))
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(disk.path, { recursive: true })
  const image = imageIn(directory)
  writeFileSync(image, '')
  truncateSync(image, mebibytes * MEBIBYTE)
  run('mkfs.ext4', '-q', '-F', '-J', 'size=16', image)
  return disk
}

function imageIn(directory: string): string {
  return join(directory, 'disk.img')
}

function diskIn(directory: string): Disk {
  const [image, path] = [imageIn(directory), join(directory, 'disk')]
  let mountedMs = 0
  return {
    path,
    get mountedMs() {
      return mountedMs
    },
    mount() {
      unmountAtExit()
      mountedMs = Date.now()
      mounted.add(path)
      try {
        run('mount', '-t', 'ext4', '-o', OPTIONS, image, path)
      } catch (error) {
        mounted.delete(path)
        throw error
      }
    },
    unmount() {
      if (!mounted.has(path)) return
      for (let tries = 1; ; tries += 1) {
        try {
          run('umount', path)
          break
        } catch (error) {
          // A process that was just killed may still have files open.
          if (tries === UNMOUNT_TRIES_MAX) throw error
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
        }
      }
      mounted.delete(path)
    },
    cut: () => run('perl', '-e', SHUTDOWN, path),
    fail() {
      run('mount', '-o', 'remount,errors=remount-ro', path)
      writeFileSync(`/sys/fs/ext4/${deviceOf(path)}/trigger_fs_error`, 'x')
    },
    keep: () => run('cp', '--sparse=always', image, join(directory, 'after-cut.img')),
    copyTo(other) {
      mkdirSync(join(other, 'disk'), { recursive: true })
      for (let copies = 1; ; copies += 1) {
        const before = writesTo(path)
        run('cp', '--sparse=always', image, imageIn(other))
        // The kernel writes the journal and recent pages even while no process writes.
        if (writesTo(path) === before) return diskIn(other)
        if (copies === COPIES_MAX) throw new Error(`The disk changed during each of ${copies} copies.`)
      }
    }
  }
}

/** Returns the kernel's counts of completed and pending writes to the device that is mounted here. */
function writesTo(path: string): string {
  const counts = readFileSync(`/sys/class/block/${deviceOf(path)}/stat`, 'utf8')
    .trim()
    .split(/ +/)
  return `${counts[4]} ${counts[8]}`
}

function deviceOf(path: string): string {
  const device = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find((line) => line.split(' ')[1] === path)
    ?.split(' ')[0]
  return basename(device ?? '')
}

/** Returns the reason why disks cannot be created here, or undefined. */
export function whyNoDisk(): string | undefined {
  const directory = mkdtempSync(join(tmpdir(), 'gamenet-power-'))
  try {
    return whyNoDiskIn(directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

function whyNoDiskIn(directory: string): string | undefined {
  const disk = tryIt(() => makeDisk(join(directory, 'probe'), { mebibytes: 64 }))
  if (typeof disk === 'string') return disk
  const reason = tryIt(() => {
    disk.mount()
    writeFileSync(join(disk.path, 'lost'), '')
    disk.cut()
  })
  disk.unmount()
  return typeof reason === 'string' ? reason : undefined
}

function tryIt<Result>(work: () => Result): Result | string {
  try {
    return work()
  } catch (error) {
    return `no disk whose power can be cut: ${error instanceof Error ? error.message.trim() : error}`
  }
}

/** A mount would outlive the process; unmounting also frees the loop device. */
function unmountAtExit(): void {
  if (mounted.size > 0 || process.listeners('exit').includes(unmountAll)) return
  process.on('exit', unmountAll)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGALRM'] as const) process.once(signal, () => process.exit(1))
}

function unmountAll(): void {
  for (const path of mounted) tryIt(() => run('umount', '-l', path))
}

function run(command: string, ...args: readonly string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
