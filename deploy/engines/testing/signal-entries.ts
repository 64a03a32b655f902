import { getEventListeners } from 'node:events'

/** Returns the number of listeners of a signal, and of the entries that `AbortSignal.any` leaves at it on Node 20. */
export function signalEntries(signal: AbortSignal): number {
  const name = Object.getOwnPropertySymbols(signal).find(({ description }) => description === 'kDependantSignals')
  const dependants = name === undefined ? undefined : Reflect.get(signal, name)
  return getEventListeners(signal, 'abort').length + (dependants?.size ?? 0)
}
