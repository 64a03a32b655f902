import type { EditedProfile, ProfileSummary } from './answers.js'
import type { Act, CallOptions, Get } from './request.js'

/** The fields of an edit; absent ones stay unchanged. */
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

/** Methods about profiles. Usernames are compared without case. */
export function profileMethods(get: Get, act: Act) {
  return {
    /** Returns a user's profile, play time, unlocks and totals on boards. */
    getProfile: (parameters: { readonly username: string }, call?: CallOptions) =>
      get<ProfileSummary>('/api/profile/:username', parameters, call),

    /** Changes the profile of the user of the call's `sessionKey`. */
    editProfile: ({ username, ...edit }: { readonly username: string } & Readonly<ProfileEdit>, call?: CallOptions) =>
      act<EditedProfile>('PATCH', '/api/profile/:username', { username }, edit, call),

    /** The same as `editProfile`, by another method. */
    putProfile: ({ username, ...edit }: { readonly username: string } & Readonly<ProfileEdit>, call?: CallOptions) =>
      act<EditedProfile>('PUT', '/api/profile/:username', { username }, edit, call)
  }
}
