'use strict'
/*
 * Runs the service of `npm start` in a process of its own and starts it again when a signal of its own has ended it: it
 * ends itself when the embedded ClickHouse hangs, and native code can crash. SIGKILL comes from outside and is obeyed:
 * it ends both processes.
 */
const childProcess = require('node:child_process')

/** Less than any hang takes. What ended sooner would probably end again. */
const RESTARTED_AFTER_MS = 30_000

/**
 * For glibc's allocator, which reads it at the start of a process: by default up to eight heaps for each processor keep
 * what the threads have freed. ClickHouse has an allocator of its own.
 */
exports.ENVIRONMENT = { MALLOC_ARENA_MAX: '2' }

/** Runs `node args…` until it ends by itself, or by SIGTERM or SIGINT of this process. Exits with its code. */
exports.supervise = function supervise(args, restartedAfterMs) {
  const afterMs = restartedAfterMs === undefined ? RESTARTED_AFTER_MS : restartedAfterMs
  let isStopping = false
  let child = start()
  for (const signal of ['SIGTERM', 'SIGINT'])
    process.on(signal, () => {
      isStopping = true
      // Not the signal: a terminal signals both processes.
      if (child.connected) child.send('stop')
    })

  function start() {
    const begunMs = Date.now()
    const env = Object.assign({}, exports.ENVIRONMENT, process.env)
    const started = childProcess.spawn(process.execPath, args, { env, stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
    started.once('exit', (code, signal) => {
      if (signal === null) process.exit(code)
      process.stderr.write(`The service was ended by ${signal}.\n`)
      if (isStopping || signal === 'SIGKILL' || Date.now() - begunMs < afterMs) process.exit(1)
      process.stderr.write('It is started again.\n')
      child = start()
    })
    return started
  }
}
