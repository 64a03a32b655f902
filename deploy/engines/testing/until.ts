import { setTimeout as pause } from 'node:timers/promises'

/** Several times what the slowest condition takes on a busy machine. */
const UNTIL_MS_MAX = 120_000
const EVERY_MS = 20

/** Waits until a condition holds. One that does not in time fails the test with its source. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  betweenLooks: number | (() => Promise<unknown>) = EVERY_MS
): Promise<void> {
  for (const endMs = performance.now() + UNTIL_MS_MAX; !(await isSo()); ) {
    if (performance.now() > endMs) throw new Error(`Expected within ${UNTIL_MS_MAX / 1000} s, in vain: ${isSo}`)
    await (typeof betweenLooks === 'number' ? pause(betweenLooks) : betweenLooks())
  }
}
