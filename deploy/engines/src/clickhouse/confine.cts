/*
 * Landlock: the kernel refuses this thread, and the threads that it starts, all files, ports and processes but those of
 * the rules. Versions of it (ABI) are described in landlock(7).
 */
import fs = require('node:fs')
import libc = require('./libc.cjs')

/** Existing paths, and what lies below them; missing ones are skipped. */
type Rules = {
  readonly write: readonly string[]
  readonly execute: readonly string[]
  readonly read: readonly string[]
  /** Ports to listen on; 0 is any free port. */
  readonly ports: readonly number[]
  readonly abiMax: number
}

/** Numbers of system calls, the same on all processors. */
const CREATE_RULESET = 444
const ADD_RULE = 445
const RESTRICT_SELF = 446
const PR_SET_NO_NEW_PRIVS = 38
const O_PATH = 0x200000
const PATH_RULE = 1
const PORT_RULE = 2

const EXECUTE = 1
const WRITE_FILE = 2
const READ = 4 + 8
/** Rights that a rule of a single file may have: execute, write, read, truncate, ioctl. */
const OF_FILES = 1 + 2 + 4 + 0x4000 + 0x8000
const BIND = 1
const BIND_AND_CONNECT = 3
const SOCKETS_AND_SIGNALS = 3

/** Returns the version that confines this process from now on; 0 if nothing does. */
function confine(rules: Rules): number {
  const abi = Math.min(libc('syscall', CREATE_RULESET, 0, 0, 1), rules.abiMax)
  // The rights of version 1 forbid renames between folders, which tables need.
  if (abi < 2) return 0
  const all = abi >= 5 ? 0xffff : abi >= 3 ? 0x7fff : 0x3fff
  const handled = words(all, ...(abi >= 4 ? [BIND_AND_CONNECT] : []), ...(abi >= 6 ? [SOCKETS_AND_SIGNALS] : []))
  const ruleset = libc('syscall', CREATE_RULESET, handled, handled.length, 0)
  if (ruleset < 0) return 0
  const allow = (paths: readonly string[], rights: number): void => {
    for (const path of paths) {
      const stats = fs.statSync(path, { throwIfNoEntry: false })
      if (stats === undefined) continue
      const descriptor = fs.openSync(path, O_PATH)
      libc(
        'syscall',
        ADD_RULE,
        ruleset,
        PATH_RULE,
        words(stats.isDirectory() ? rights : rights & OF_FILES, descriptor),
        0
      )
      fs.closeSync(descriptor)
    }
  }
  allow(rules.write, all & ~EXECUTE)
  allow(rules.execute, READ + EXECUTE)
  allow(rules.read, READ)
  allow(['/dev/null', '/dev/urandom'], READ + WRITE_FILE)
  if (abi >= 4) for (const port of rules.ports) libc('syscall', ADD_RULE, ruleset, PORT_RULE, words(BIND, port), 0)
  libc('prctl', PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
  const isConfined = libc('syscall', RESTRICT_SELF, ruleset, 0) === 0
  fs.closeSync(ruleset)
  return isConfined ? abi : 0
}

const words = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(8 * values.length)
  for (const [at, value] of values.entries()) bytes.writeBigUInt64LE(BigInt(value), 8 * at)
  return bytes
}

export = confine
