import type { DailyPlayTime } from './answers.js'
import type { CallOptions, Get } from './request.js'

/** Methods about how long users played. */
export function playTimeMethods(get: Get) {
  return {
    /** A user's play time by UTC day and game, oldest day first; `days` 1 to 365 (30). */
    getPlayTime: (parameters: { readonly username: string; readonly days?: number | undefined }, call?: CallOptions) =>
      get<DailyPlayTime>('/api/profile/:username/play-time', parameters, call)
  }
}
