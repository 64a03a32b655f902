'use strict'
/*
 * Runs the service of `npm start` in a process of its own and starts it again when a signal has killed it: it kills itself when the
 * embedded ClickHouse hangs, and native code can crash.
 */
const childProcess = require('node:child_process')

/** Less than any hang takes. Whatever was killed sooner would probably be killed again. */
const RESTARTED_AFTER_MS = 30_000

/** Runs `node args…` until it ends by itself, or by SIGTERM or SIGINT of this process. Exits with its code. */
exports.supervise = function supervise(args, restartedAfterMs) {
  const afterMs = restartedAfterMs === undefined ? RESTARTED_AFTER_MS : restartedAfterMs
  let isStopping = false
  let child = start()
  for (const signal of ['SIGTERM', 'SIGINT'])
    process.on(signal, () => {
      isStopping = true
      // A terminal signals both processes. The end of the channel stops the child, as does the death of this process.
      if (child.connected) child.disconnect()
    })

  function start() {
    const begunMs = Date.now()
    const started = childProcess.spawn(process.execPath, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
    started.once('exit', (code, signal) => {
      if (signal === null) process.exit(code)
      process.stderr.write(`The service was killed by ${signal}.\n`)
      if (isStopping || Date.now() - begunMs < afterMs) process.exit(1)
      process.stderr.write('It is started again.\n')
      child = start()
    })
    return started
  }
}
