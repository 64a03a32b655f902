import type { UserAchievements } from '@gamenet/schemas'
import { Icon, Time } from './marks.js'
import { plural } from './text.js'

type Shown = Pick<UserAchievements['achievements'][number], 'key' | 'name' | 'description' | 'points' | 'image_url'> & {
  readonly earned?: boolean
  readonly unlocked_at?: string | null
  readonly unlock_count?: number
}

/** An achievement in a list: to whom it was given when, or how many have it. */
export function AchievementRow({ achievement }: { achievement: Shown }) {
  const { key, name, description, points, image_url, earned, unlocked_at, unlock_count } = achievement
  return (
    <li class={earned === false ? 'achievement quiet' : 'achievement'}>
      <Icon image={image_url} name={name} />
      <div>
        <a href={`/achievements/${encodeURIComponent(key)}`}>{name}</a>{' '}
        <span class="quiet">{plural(points, 'point')}</span>
        <p class="quiet">
          {description}
          {unlocked_at === undefined || unlocked_at === null ? null : (
            <>
              {' '}
              · <Time at={unlocked_at} day />
            </>
          )}
          {unlock_count === undefined ? null : ` · ${plural(unlock_count, 'player')}`}
        </p>
      </div>
    </li>
  )
}
