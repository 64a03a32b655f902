import type { DailyPlayTime } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about play time. */
export function playTimeMethods(get: Get) {
  return {
    /** Returns a user's play time by UTC day and game, oldest day first; `days` 1 to 365 (30). */
    getPlayTime: (parameters: { readonly username: string; readonly days?: number | undefined }, call?: CallOptions) =>
      get<DailyPlayTime>('/api/profile/:username/play-time', parameters, call)
  }
}
