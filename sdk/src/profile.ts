import type { EditedProfile, ProfileSummary } from './answers.js'
import type { Act, CallOptions, Get } from './request.js'

/** What an edit of a profile may change; what is not given stays. */
export type ProfileEdit = Partial<
  Pick<
    EditedProfile,
    | 'avatar_url'
    | 'avatar_hue'
    | 'chat_profile_url'
    | 'display_name_override'
    | 'linked_gamertag'
    | 'bio'
    | 'sync_avatar_from_chat'
    | 'social_links'
  >
>

/** Methods about what users say of themselves. Usernames are compared without case. */
export function profileMethods(get: Get, act: Act) {
  return {
    /** What is known of a user: profile, play time, unlocks, places on boards. */
    getProfile: (parameters: { readonly username: string }, call?: CallOptions) =>
      get<ProfileSummary>('/api/profile/:username', parameters, call),

    /** Changes the profile of the user whose `sessionKey` the call has. */
    editProfile: ({ username, ...edit }: { readonly username: string } & Readonly<ProfileEdit>, call?: CallOptions) =>
      act<EditedProfile>('PATCH', '/api/profile/:username', { username }, edit, call),

    /** The same as `editProfile`, by another method. */
    putProfile: ({ username, ...edit }: { readonly username: string } & Readonly<ProfileEdit>, call?: CallOptions) =>
      act<EditedProfile>('PUT', '/api/profile/:username', { username }, edit, call)
  }
}
