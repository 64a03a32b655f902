import {
  type AchievementCatalog,
  type AchievementHolders,
  type AchievementLeaderboard,
  type RecentUnlocks,
  Refusal
} from '@gamenet/schemas'
import { z } from 'zod'
import { integer, shown, text } from '../../request/parameters.js'
import { achievementCatalog, achievementHolders } from '../../routes/achievement.js'
import { achievementLeaderboard } from '../../routes/achievement-score.js'
import { recentUnlocks } from '../../routes/achievement-unlock-feed.js'
import { AchievementGroup, UnlockLine } from '../components/achievements.js'
import { Ago, Icon, UserLink } from '../components/marks.js'
import { FeedCard, Pager, pageOf, TableCard } from '../components/table.js'
import { count, percent, plural } from '../components/text.js'
import { ask, page, tryAsk } from '../values/page.js'

const SCORES = 25
const NEWEST = 25
const HOLDERS = 50
/** The API skips at most 10,000. */
const PAGES_MAX = 201

/** `/achievements`: the catalogue with rarity, scores, newest unlocks. */
export const achievementsPage = page({
  name: 'page-achievements',
  path: '/achievements',
  input: z.object({}),
  parts: () => ({
    catalog: ask<AchievementCatalog>(achievementCatalog),
    scores: tryAsk<AchievementLeaderboard>(achievementLeaderboard, { limit: SCORES }),
    recent: tryAsk<RecentUnlocks>(recentUnlocks, { limit: NEWEST })
  }),
  view: ({ catalog: { achievements, groups, stats }, scores, recent }) => ({
    title: 'Achievements',
    description: `All ${count(stats.totalAchievements)}, with how many players have each, top scores and newest.`,
    canonical: '/achievements',
    section: '/achievements',
    content: (
      <>
        <h1>Achievements</h1>
        <p class="quiet">
          {plural(stats.totalAchievements, 'achievement')}, {plural(stats.maxGamerscore, 'point')};{' '}
          {plural(stats.playersWithAchievements, 'player')} with at least one.
        </p>
        <div class="columns">
          {groups.map(({ groupId, displayName, imageUrl, totalCount, totalPoints }) => (
            <AchievementGroup
              key={groupId}
              displayName={displayName}
              imageUrl={imageUrl}
              facts={`${count(totalCount)}, ${plural(totalPoints, 'point')}`}
              achievements={achievements.filter(({ category }) => category === groupId)}
            />
          ))}
          <TableCard
            title="Top scores"
            rows={scores?.leaderboard ?? []}
            columns={[
              ['#Rank', ({ rank }) => rank],
              ['User', ({ username }) => <UserLink name={username} />],
              ['#Points', ({ totalScore }) => count(totalScore)],
              ['#Achievements', ({ achievementCount }) => count(achievementCount)]
            ]}
          />
          <FeedCard title="Newest" rows={recent?.recent ?? []} row={(unlock) => <UnlockLine unlock={unlock} />} />
        </div>
      </>
    )
  })
})

/** `/achievements/:key`: one achievement. */
export const achievementPage = page({
  name: 'page-achievement',
  path: '/achievements/:key',
  input: z.object({
    key: text({ example: 'on-the-board', max: 100 }),
    page: integer({ min: 1, max: PAGES_MAX }).default(1)
  }),
  parts: ({ key, page: number }: { key: string; page: number }) => ({
    catalog: ask<AchievementCatalog>(achievementCatalog),
    holders: ask<AchievementHolders>(achievementHolders, {
      achievementKey: key,
      limit: HOLDERS,
      offset: (number - 1) * HOLDERS
    })
  }),
  view: (
    { catalog: { achievements, groups, stats }, holders: { holders, total } },
    { key, page: given },
    { query }
  ) => {
    const found = achievements.find((each) => each.key === key)
    if (found === undefined) throw new Refusal('achievement_unknown', [shown(key)])
    const path = `/achievements/${encodeURIComponent(key)}`
    const group = groups.find(({ groupId }) => groupId === found.category)
    return {
      title: found.name,
      description: `${found.description} ${plural(found.points, 'point')}.`,
      canonical: path,
      section: '/achievements',
      content: (
        <>
          <p>
            <a href="/achievements">Achievements</a> › {group?.displayName}
          </p>
          <div class="titled">
            <Icon image={found.image_url} name={found.name} size={56} />
            <h1>{found.name}</h1>
          </div>
          <p>{found.description}</p>
          <p class="quiet">
            {plural(found.points, 'point')} · {plural(found.unlock_count, 'player')}
            {stats.playersWithAchievements === 0
              ? ''
              : ` (${percent(found.unlock_count / stats.playersWithAchievements)} of those with any)`}
          </p>
          <FeedCard
            title={`Holders (${count(total)})`}
            rows={holders}
            empty="Nobody yet."
            row={({ username, unlockedAt }) => (
              <>
                <UserLink name={username} /> <Ago at={unlockedAt} />
              </>
            )}
          />
          <Pager {...pageOf(given, total, HOLDERS)} path={path} query={query} />
        </>
      )
    }
  }
})
