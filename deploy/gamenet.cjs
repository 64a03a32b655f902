#!/usr/bin/env node
'use strict'
/*
 * The `gamenet` command.
 */
const fs = require('node:fs')
const path = require('node:path')
const url = require('node:url')
const v8 = require('node:v8')

// The embedded PostgreSQL is WebAssembly. As Node has it, each start optimizes what it runs, most of a processor
// second; so, only what goes on computing is.
v8.setFlagsFromString('--wasm-tiering-budget=500000000')

// V8 counts the bytes of buffers as growth of the heap: while an import or a backlog moved bytes through its threads,
// each of them marked all of its few objects at every ten megabytes, a sixth of the processor time. Now a heap is
// marked when it has grown to three times its size.
v8.setFlagsFromString('--heap-growing-percent=200')

// Ctrl-C, also while the program is loaded, ends a command with a sentence, unless the command ends itself. A process
// of `npm start` is ended by its supervisor. The signal itself ends the process: an exit would wait for the engines'
// threads.
if (!process.connected) process.on('SIGINT', interrupted)

function interrupted() {
  if (process.listenerCount('SIGINT') > 1) return
  process.stderr.write('Interrupted. The same command can be run again.\n')
  process.off('SIGINT', interrupted)
  process.kill(process.pid, 'SIGINT')
}

const program = path.join(__dirname, 'dist', 'src', 'main.js')
if (!fs.existsSync(program)) {
  process.stderr.write('Gamenet Stats is not built yet; run `npm start` or `npm run build` in the project first.\n')
  process.exit(1)
}
void import(url.pathToFileURL(program).href)
