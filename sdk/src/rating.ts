import type { RatingGiven, Reputation } from './answers.js'
import type { Act, CallOptions, Get } from './request.js'

/** Methods about ratings of profiles. Usernames are compared without case. */
export function ratingMethods(get: Get, act: Act) {
  return {
    /**
     * Returns ratings of a profile, newest first, `feedbackLimit` 1 to 30 (12); with a `sessionKey` also its user's own
     * rating.
     */
    getReputation: (
      parameters: { readonly username: string; readonly feedbackLimit?: number | undefined },
      call?: CallOptions
    ) => get<Reputation>('/api/profile/:username/reputation', parameters, call),

    /** Rates a profile as the user of the call's `sessionKey`, and replaces that user's earlier rating. */
    rateProfile: (
      {
        username,
        ...rating
      }: { readonly username: string; readonly stars: number; readonly comment?: string | null | undefined },
      call?: CallOptions
    ) => act<RatingGiven>('POST', '/api/profile/:username/reputation', { username }, rating, call)
  }
}
