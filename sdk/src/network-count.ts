import type { ActivitySummary, DailyOnline, LobbyHistory, OnlineHistory, RegisteredUsers } from './answers.js'
import type { CallOptions, Get } from './request.js'
import type { Days, Known, Resolution } from './window.js'

const STATS = '/api/network-stats'

/** Methods about the network as a whole. */
export function networkCountMethods(get: Get) {
  return {
    /** Returns the last count of registered users of each UTC day; `days` 1 to 365 (30). */
    getRegisteredUsers: (parameters: { readonly days?: number | undefined } = {}, call?: CallOptions) =>
      get<RegisteredUsers>(`${STATS}/registered-users`, parameters, call),

    /** Returns users online over time, oldest first; `days` 1 to 30 (1). */
    getOnlineHistory: (parameters: Days & Resolution & Known = {}, call?: CallOptions) =>
      get<OnlineHistory>(`${STATS}/online-24h`, parameters, call),

    /** Returns open lobbies over time, oldest first; `days` 1 to 30 (1). */
    getLobbyHistory: (parameters: Days & Resolution & Known = {}, call?: CallOptions) =>
      get<LobbyHistory>(`${STATS}/lobbies-24h`, parameters, call),

    /** Returns the peaks of the last 24 (`today`) or 168 hours (`7d`). */
    getActivitySummary: (
      parameters: { readonly period?: ActivitySummary['period'] | undefined } = {},
      call?: CallOptions
    ) => get<ActivitySummary>(`${STATS}/activity-summary`, parameters, call),

    /**
     * Returns lowest, highest and mean online count of each UTC day; `days` 1 to 365 (30), or a window of whole days.
     */
    getDailyOnline: (parameters: Omit<Days, 'tz'> = {}, call?: CallOptions) =>
      get<DailyOnline>(`${STATS}/daily-online`, parameters, call)
  }
}
