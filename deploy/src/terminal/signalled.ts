/**
 * Resolves at SIGTERM or SIGINT, and when the supervisor of `npm start` requests a stop. If the supervisor is killed,
 * the process ends at once, so that a killed `npm start` leaves nothing behind.
 */
export function signalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
    const end = () => process.kill(process.pid, 'SIGKILL')
    // A process without a supervisor has no channel: undefined.
    if (process.connected === false) end()
    process.once('message', () => resolve())
    process.once('disconnect', end)
    process.channel?.unref()
  })
}
