/*
 * The process of an embedded ClickHouse. The library `libchdb` contains the server: `clickhouse local` with
 * `SYSTEM START LISTEN`. CommonJS, because Node loads it without its thread pool: the threads that the library uses
 * begin after the confinement and inherit it.
 *
 * Its first line of standard input is a `ChildStart`; it prints one line, a `ChildReady`. It ends with its parent: at
 * the end of standard input, and on Linux also by a signal of the kernel.
 */
import fs = require('node:fs')
import os = require('node:os')
import path = require('node:path')
import ffi = require('ffi-rs')
import confine = require('./confine.cjs')
import libc = require('./libc.cjs')

import type { ChildReady, ChildStart } from './child.js'

const { I32, StringArray, String: Text, External } = ffi.DataType
const LIBRARY = 'libchdb'
const KILL = 9
const POLL_MS = 10
const DESCRIPTORS_MAX = 1024
const AF_INET = 2
const LOWEST_PRIORITY = 19
const isLinux = process.platform === 'linux'

/**
 * What the engine reads outside of its directory and its libraries. Without `auxv` it looks for the same behind the
 * environment, which has been moved: it crashes when something else is there.
 */
const SYSTEM_FILES = [
  ...['/usr/share/zoneinfo', '/sys/fs/cgroup', '/sys/devices/system', '/proc/meminfo', '/proc/cpuinfo', '/proc/stat'],
  ...['/proc/mounts', '/etc/ld.so.cache'],
  ...['maps', 'status', 'statm', 'stat', 'smaps_rollup', 'cgroup', 'auxv'].map((name) => `/proc/self/${name}`)
]

const start = firstLine()
endWithParent(start.parent)
withoutCoreDumps()
if (start.statementBytes > 0) yieldToOthers()
for (const [name, value] of Object.entries(start.environment)) libc('setenv', name, value, 1)
const abi = isLinux
  ? confine({
      write: [start.path],
      execute: [path.dirname(start.library), '/usr/lib', '/lib', '/lib64'],
      read: [...SYSTEM_FILES, ...start.configuration],
      ports: start.ports,
      abiMax: start.abiMax
    })
  : 0
runServer()
announce()

/** The parent sends nothing after it. */
function firstLine(): ChildStart {
  const chunk = Buffer.alloc(65_536)
  let text = ''
  while (!text.endsWith('\n')) {
    const length = fs.readSync(0, chunk)
    if (length === 0) process.exit(1)
    text += chunk.toString('utf8', 0, length)
  }
  return JSON.parse(text) as ChildStart
}

function endWithParent(parent: number): void {
  const PR_SET_PDEATHSIG = 1
  const end = () => process.kill(process.pid, KILL)
  if (isLinux) libc('prctl', PR_SET_PDEATHSIG, KILL)
  // It may have ended before.
  if (process.ppid !== parent) end()
  process.stdin.on('end', end).on('error', end).resume()
}

/** Linux gives each thread a priority; a new one has that of its creator. Node has threads before this program. */
function yieldToOthers(): void {
  for (const thread of isLinux ? fs.readdirSync('/proc/self/task') : [process.pid])
    os.setPriority(Number(thread), LOWEST_PRIORITY)
}

/** A dump of the engine's memory would contain rows of people. */
function withoutCoreDumps(): void {
  const RLIMIT_CORE = 4
  libc('setrlimit', RLIMIT_CORE, Buffer.alloc(16))
}

/** Runs on a thread of its own, and returns only if the server does not start. */
function runServer(): void {
  const listen = ['SYSTEM START LISTEN HTTP', ...(start.ports.length > 1 ? ['SYSTEM START LISTEN TCP'] : [])]
  // The port is open as long as this statement runs.
  const forever =
    'SELECT sleepEachRow(3) FROM numbers(1000000000) SETTINGS max_block_size = 1, ' +
    'function_sleep_max_microseconds_per_block = 90000000000 FORMAT Null'
  const [configuration = ''] = start.configuration
  const args = ['clickhouse', '--config-file', configuration, '--path', start.path, '--query']
  args.push([...listen, forever].join('; '))
  ffi.open({ library: LIBRARY, path: start.library })
  const returned = ffi.load({
    library: LIBRARY,
    funcName: 'chdb_query_cmdline',
    retType: External,
    paramsType: [I32, StringArray],
    paramsValue: [args.length, args],
    runInNewThread: true
  })
  const errorOf = { library: LIBRARY, funcName: 'chdb_result_error', retType: Text, paramsType: [External] }
  void returned.then((result) => {
    fs.writeSync(2, `${ffi.load({ ...errorOf, paramsValue: [result] })}\n`)
    process.exit(1)
  })
}

/** Prints the ports of the server as soon as it listens. */
function announce(): void {
  const ports = listeningPorts()
  if (ports.length < start.ports.length) setTimeout(announce, POLL_MS)
  else {
    if (isLinux && start.statementBytes > 0) limitMemory(start.statementBytes)
    fs.writeSync(1, `${JSON.stringify({ ports, abi } satisfies ChildReady)}\n`)
  }
}

/**
 * The engine counts the memory of C++ strings, and refuses it too late: `printf('%2000000000d', 1)` takes 4 GiB. The
 * kernel refuses it, unless the allocator has kept addresses for it.
 */
function limitMemory(bytes: number): void {
  const RLIMIT_DATA = 2
  const used = /VmData:\s+(\d+) kB/.exec(fs.readFileSync('/proc/self/status', 'latin1'))?.[1]
  const limit = Buffer.alloc(16)
  for (const at of [0, 8]) limit.writeBigUInt64LE(BigInt(1024 * Number(used) + bytes), at)
  libc('setrlimit', RLIMIT_DATA, limit)
}

function listeningPorts(): number[] {
  const address = Buffer.alloc(128)
  const ports: number[] = []
  for (let descriptor = 3; descriptor < DESCRIPTORS_MAX; descriptor += 1) {
    if (libc('getsockname', descriptor, address, lengthOf(address)) !== 0) continue
    // Linux has the family in two bytes, macOS in the second one.
    const family = isLinux ? address.readUInt16LE(0) : address[1]
    if (family === AF_INET && isListening(descriptor)) ports.push(address.readUInt16BE(2))
  }
  return ports
}

function isListening(descriptor: number): boolean {
  const [SOL_SOCKET, SO_ACCEPTCONN] = isLinux ? ([1, 30] as const) : ([0xffff, 2] as const)
  const value = Buffer.alloc(4)
  libc('getsockopt', descriptor, SOL_SOCKET, SO_ACCEPTCONN, value, lengthOf(value))
  return value.readInt32LE(0) !== 0
}

function lengthOf(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32LE(bytes.length)
  return length
}
