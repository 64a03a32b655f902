import type { RecentUnlocks, UserAchievements } from '@gamenet/schemas'
import type { ComponentChildren } from 'preact'
import { Ago, Facts, Icon, Name, Time, UserLink } from './marks.js'
import { Feed } from './table.js'
import { plural } from './text.js'

type Shown = Pick<UserAchievements['achievements'][number], 'key' | 'name' | 'description' | 'points' | 'image_url'> & {
  readonly earned?: boolean
  readonly unlocked_at?: string | null
  readonly unlock_count?: number
}

type GroupProps = {
  displayName: string
  imageUrl: string | null
  facts: string
  achievements: readonly Shown[]
  children?: ComponentChildren
}

/** The achievements of a game, or those of the network. */
export function AchievementGroup({ displayName, imageUrl, facts, achievements, children }: GroupProps) {
  return (
    <section class="card">
      <h2>
        <Icon image={imageUrl} name={displayName} /> <Name>{displayName}</Name> <span class="quiet">{facts}</span>
      </h2>
      {children}
      <Feed rows={achievements} row={(each) => <AchievementLine achievement={each} />} />
    </section>
  )
}

/** An achievement in a list: to whom it was given when, or how many have it. */
export function AchievementLine({ achievement }: { achievement: Shown }) {
  const { key, name, description, points, image_url, earned, unlocked_at, unlock_count } = achievement
  return (
    <div class={earned === false ? 'titled quiet' : 'titled'}>
      <Icon image={image_url} name={name} />
      <div>
        <a href={`/achievements/${encodeURIComponent(key)}`}>{name}</a>{' '}
        <span class="quiet">{plural(points, 'point')}</span>
        <p class="quiet">
          <Facts
            of={[
              description,
              unlocked_at && <Time at={unlocked_at} day />,
              unlock_count === undefined ? null : plural(unlock_count, 'player')
            ]}
          />
        </p>
      </div>
    </div>
  )
}

/** Who got which achievement, and when. */
export function UnlockLine({ unlock }: { unlock: RecentUnlocks['recent'][number] }) {
  const { username, unlockedAt, achievementKey, achievementName } = unlock
  return (
    <>
      <UserLink name={username} /> <a href={`/achievements/${achievementKey}`}>{achievementName}</a>{' '}
      <Ago at={unlockedAt} />
    </>
  )
}
