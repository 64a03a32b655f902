import type { ProfileSummary } from '@gamenet/schemas'
import type { CallOptions, Get } from './request.js'

/** Methods about what users say of themselves. Usernames are compared without case. */
export function profileMethods(get: Get) {
  return {
    /** What is known of a user: profile, play time, unlocks, places on boards. */
    getProfile: (parameters: { readonly username: string }, call?: CallOptions) =>
      get<ProfileSummary>('/api/profile/:username', parameters, call)
  }
}
