import type {
  DailyPlayTime,
  ProfileSummary,
  Reputation,
  Timeline,
  UserAchievements,
  UserGames,
  UserScores
} from '@gamenet/schemas'
import { z } from 'zod'
import { username } from '../../request/parameters.js'
import { userAchievements } from '../../routes/achievement.js'
import { playTime } from '../../routes/play-time.js'
import { profile } from '../../routes/profile.js'
import { reputation } from '../../routes/rating.js'
import { timeline } from '../../routes/timeline.js'
import { userGames } from '../../routes/user-game.js'
import { userScores } from '../../routes/user-score.js'
import { AchievementRow } from '../components/achievements.js'
import { Card, GameLink, Icon, N, Name, PlayerLink, Table, Time, UserLink } from '../components/marks.js'
import { BoardLink, measureText } from '../components/records.js'
import { count, DAY_MS, dayText, msOf, playText, plural, userPath } from '../components/text.js'
import { ask, page, tryAsk, type View } from '../values/page.js'

const PLAY_DAYS = 365
const SHOWN = 10
const RATINGS_MAX = 30
const userInput = z.object({ username: username() })
type UserInput = z.infer<typeof userInput>

/** People decide whether search engines find them: pages of users are not indexed. */
function userView(name: string, view: Omit<View, 'canonical' | 'isUnlisted'>, below = ''): View {
  return { canonical: `${userPath(name)}${below}`, isUnlisted: true, islands: ['me'], ...view }
}

/** `/users/:username`: one user. */
export const userPage = page({
  name: 'page-user',
  path: '/users/:username',
  input: userInput,
  parts: ({ username: name }: UserInput) => ({
    profile: ask<ProfileSummary>(profile, { username: name }),
    play: tryAsk<DailyPlayTime>(playTime, { username: name, days: PLAY_DAYS }),
    games: tryAsk<UserGames>(userGames, { username: name }),
    achievements: tryAsk<UserAchievements>(userAchievements, { username: name }),
    scores: tryAsk<UserScores>(userScores, { username: name, limit: SHOWN }),
    reputation: tryAsk<Reputation>(reputation, { username: name, feedbackLimit: 5 }),
    timeline: tryAsk<Timeline>(timeline, { username: name, limit: 15 })
  }),
  view: ({ profile: user, play, games, achievements, scores, reputation: rated, timeline: events }) => {
    const path = userPath(user.username)
    const earned = (achievements?.achievements ?? []).filter((each) => each.earned)
    return userView(user.username, {
      title: user.username,
      description: `${playText(user.playTime.totalMinutes)} played, ${plural(user.achievementScore, 'point')}.`,
      content: (
        <>
          <Head
            user={user}
            rated={rated}
            all={(achievements?.groups ?? []).reduce((sum, { totalCount }) => sum + totalCount, 0)}
          />
          <Card title="Play time" more={<a href={`${path}/games`}>All games</a>}>
            {play === undefined || play.totalMinutes === 0 ? (
              <p class="quiet">None seen in the last year.</p>
            ) : (
              <Days play={play} />
            )}
            <ul class="plain row">
              {(games?.games ?? [])
                .toSorted((a, b) => b.totalMinutes - a.totalMinutes)
                .slice(0, 4)
                .map(({ gameName, titleId, totalMinutes }) => (
                  <li key={gameName}>
                    {titleId === null ? <Name>{gameName}</Name> : <GameLink titleId={titleId} name={gameName} />}{' '}
                    {playText(totalMinutes)}
                  </li>
                ))}
            </ul>
          </Card>
          <div class="columns">
            <Card title="Achievements" more={<a href={`${path}/achievements`}>All</a>}>
              {earned.length === 0 ? <p class="quiet">None yet.</p> : null}
              <ul class="plain feed">
                {earned
                  .toSorted((a, b) => msOf(b.unlocked_at ?? '') - msOf(a.unlocked_at ?? ''))
                  .slice(0, SHOWN)
                  .map((each) => (
                    <AchievementRow key={each.id} achievement={each} />
                  ))}
              </ul>
            </Card>
            <Scores scores={scores} />
            <Ratings rated={rated} path={path} name={user.username} />
            <Events events={events ?? []} />
          </div>
        </>
      )
    })
  }
})

/** `/users/:username/achievements`: all achievements of a user by game, with progress. */
export const userAchievementsPage = page({
  name: 'page-user-achievements',
  path: '/users/:username/achievements',
  input: userInput,
  parts: ({ username: name }: UserInput) => ({ found: ask<UserAchievements>(userAchievements, { username: name }) }),
  view: ({ found }, { username: name }) =>
    userView(
      name,
      {
        title: `Achievements of ${name}`,
        content: (
          <>
            <Crumb name={name} />
            <h1>Achievements</h1>
            <p class="headline">
              <strong>
                <N of={found.score} />
              </strong>{' '}
              points, {count(found.achievements.filter(({ earned }) => earned).length)} of{' '}
              {count(found.achievements.length)}
            </p>
            {found.groups.map((group) => (
              <section class="card" key={group.groupId}>
                <h2>
                  <Icon image={group.imageUrl} name={group.displayName} /> <Name>{group.displayName}</Name>{' '}
                  <span class="quiet">
                    {group.unlockedCount} of {group.totalCount}, {plural(group.earnedPoints, 'point')}
                  </span>
                </h2>
                <progress
                  max={group.totalCount}
                  value={group.unlockedCount}
                  aria-label={`Progress in ${group.displayName}`}
                />
                <ul class="plain feed">
                  {group.achievements.map((each) => (
                    <AchievementRow key={each.id} achievement={each} />
                  ))}
                </ul>
              </section>
            ))}
          </>
        )
      },
      '/achievements'
    )
})

/** `/users/:username/games`: the games of a user. */
export const userGamesPage = page({
  name: 'page-user-games',
  path: '/users/:username/games',
  input: userInput,
  parts: ({ username: name }: UserInput) => ({ found: ask<UserGames>(userGames, { username: name }) }),
  view: ({ found: { games, hasPlayTimeTracking } }, { username: name }) =>
    userView(
      name,
      {
        title: `Games of ${name}`,
        content: (
          <>
            <Crumb name={name} />
            <h1>Games</h1>
            <section class="card">
              {games.length === 0 ? <p>None seen yet.</p> : null}
              {hasPlayTimeTracking ? null : <p class="quiet">This user’s play time has never been seen.</p>}
              <Table label="Games" head={['Game', '#Played', 'Last played']}>
                {games.map(({ gameName, titleId, imageUrl, totalMinutes, lastPlayedAt }) => (
                  <tr key={gameName}>
                    <th scope="row">
                      {titleId === null ? (
                        <Name>{gameName}</Name>
                      ) : (
                        <GameLink titleId={titleId} name={gameName} image={imageUrl ?? ''} />
                      )}
                    </th>
                    <td class="number">{playText(totalMinutes)}</td>
                    <td>
                      <Time at={lastPlayedAt} ago />
                    </td>
                  </tr>
                ))}
              </Table>
            </section>
          </>
        )
      },
      '/games'
    )
})

/** `/users/:username/ratings`: what others said. */
export const userRatingsPage = page({
  name: 'page-user-ratings',
  path: '/users/:username/ratings',
  input: userInput,
  parts: ({ username: name }: UserInput) => ({
    found: ask<Reputation>(reputation, { username: name, feedbackLimit: RATINGS_MAX })
  }),
  view: ({ found }, { username: name }) =>
    userView(
      name,
      {
        title: `Ratings of ${name}`,
        content: (
          <>
            <Crumb name={name} />
            <h1>Ratings</h1>
            <p class="headline">{starsText(found)}</p>
            <section class="card">
              <Feedback rated={found} />
            </section>
          </>
        )
      },
      '/ratings'
    )
})

function Crumb({ name }: { name: string }) {
  return (
    <p>
      <UserLink name={name} /> ›
    </p>
  )
}

function starsText({ average, ratingCount, priorOnly }: Reputation): string {
  if (priorOnly) return 'No ratings yet; new profiles start at 5 stars.'
  return `★ ${average.toFixed(2)} of ${plural(ratingCount, 'rating')}; new profiles start at 5`
}

function Head({ user, rated, all }: { user: ProfileSummary; rated: Reputation | undefined; all: number }) {
  const { profile: own, playTime: played } = user
  const name = own.display_name_override ?? user.username
  return (
    <section class="head" data-user={user.username}>
      <div class="titled">
        <Icon image={undefined} name={user.username} size={56} />
        <div>
          <h1>
            <Name>{name}</Name>
          </h1>
          <p class="quiet">
            {name === user.username ? null : <Name>{user.username} · </Name>}
            {own.linked_gamertag === '' ? null : (
              <>
                gamertag <PlayerLink name={own.linked_gamertag} /> {own.console_verified ? '✓ verified' : ''} ·{' '}
              </>
            )}
            {stateOf(played)}
            {played.lastOnlineAt === null ? null : (
              <>
                , last online <Time at={played.lastOnlineAt} ago />
              </>
            )}
          </p>
        </div>
      </div>
      {own.bio === '' ? null : (
        <p>
          “<Name>{own.bio}</Name>”
        </p>
      )}
      <p class="headline">
        <strong>{playText(played.totalMinutes)}</strong> on {plural(played.daysSeen, 'day')} ·{' '}
        {plural(user.achievementScore, 'point')}, {count(user.achievementCount)} of {count(all)} achievements
        {rated === undefined ? null : ` · ${starsText(rated)}`}
      </p>
      {own.social_links.length === 0 ? null : (
        <p class="row">
          {own.social_links.map(({ platform, url }) => (
            <a key={url} href={url} rel="nofollow noopener noreferrer ugc">
              <Name>{platform}</Name>
            </a>
          ))}
        </p>
      )}
      <div id="own" hidden />
    </section>
  )
}

function stateOf({ currentGame, lastState, lastPlayedGame }: ProfileSummary['playTime']): string {
  if (currentGame !== null && currentGame !== undefined) return `plays ${currentGame}`
  const last = lastPlayedGame === null || lastPlayedGame === undefined ? '' : `, last in ${lastPlayedGame}`
  return `${lastState ?? 'never seen'}${last}`
}

/** A square a day, a column a week, over one year. */
function Days({ play }: { play: DailyPlayTime }) {
  const last = msOf(play.days.at(-1)?.date ?? '1970-01-01')
  const firstMs = last - (PLAY_DAYS - 1) * DAY_MS
  const firstColumn = Math.floor((firstMs / DAY_MS + 3) / 7)
  const highest = Math.max(1, ...play.days.map(({ totalMinutes }) => totalMinutes))
  const shadeOf = (minutes: number) => (minutes === 0 ? 0 : 1 + Math.min(4, Math.floor((minutes / highest) * 5)))
  return (
    <svg
      class="heat year"
      viewBox="0 0 640 86"
      role="img"
      aria-label={`${playText(play.totalMinutes)} on ${plural(play.daysSeen, 'day')}`}
    >
      <pattern id="day" width="12" height="12" patternUnits="userSpaceOnUse">
        <rect class="shade-0" width="11" height="11" />
      </pattern>
      <rect class="none" width="636" height="84" fill="url(#day)" />
      {play.days
        .filter(({ isSeen }) => isSeen)
        .map(({ date, totalMinutes, games }) => {
          // The epoch was a Thursday.
          const day = msOf(date) / DAY_MS + 3
          return (
            <rect
              key={date}
              class={`shade-${shadeOf(totalMinutes)}`}
              x={(Math.floor(day / 7) - firstColumn) * 12}
              y={(day % 7) * 12}
              width="11"
              height="11"
            >
              <title>
                {[`${dayText(date)}: ${playText(totalMinutes)}`, ...games.map(({ gameName }) => gameName)].join(', ')}
              </title>
            </rect>
          )
        })}
    </svg>
  )
}

function Scores({ scores }: { scores: UserScores | undefined }) {
  return (
    <Card
      title="Boards"
      more={scores === undefined || scores.scores.length === 0 ? undefined : <PlayerLink name={scores.playerName} />}
    >
      {scores === undefined || scores.scores.length === 0 ? (
        <p class="quiet">On no board.</p>
      ) : (
        <Table label="Boards" head={['Board', '#Rank', '#Value']}>
          {scores.scores.map((score) => (
            <tr key={`${score.titleId}/${score.leaderboardId}/${score.rank}`}>
              <th scope="row">
                <BoardLink {...score} />
              </th>
              <td class="number">{count(score.rank)}</td>
              <td class="number">{measureText(score.rating, score.timeMs, score.isTime)}</td>
            </tr>
          ))}
        </Table>
      )}
    </Card>
  )
}

function Ratings({ rated, path, name }: { rated: Reputation | undefined; path: string; name: string }) {
  return (
    <Card title="Ratings" more={<a href={`${path}/ratings`}>All</a>}>
      {rated === undefined ? <p class="quiet">Not readable at the moment.</p> : <Feedback rated={rated} />}
      <form id="rate" data-user={name} hidden>
        <label>
          Stars <input type="number" name="stars" min="1" max="5" required />
        </label>
        <label>
          Comment <input name="comment" maxlength={500} />
        </label>
        <button type="submit">Rate</button>
        <output />
      </form>
    </Card>
  )
}

function Feedback({ rated }: { rated: Reputation }) {
  return (
    <>
      {rated.feedback.length === 0 ? <p class="quiet">{starsText(rated)}</p> : null}
      <ul class="plain feed">
        {rated.feedback.map(({ raterUsername, stars, comment, createdAt }) => (
          <li key={`${raterUsername}${createdAt}`}>
            <span role="img" aria-label={`${stars} of 5 stars`}>
              {'★'.repeat(stars)}
            </span>{' '}
            <UserLink name={raterUsername} />
            {comment === null ? null : (
              <>
                : <Name>{comment}</Name>
              </>
            )}{' '}
            <span class="quiet">
              <Time at={createdAt} ago />
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}

function Events({ events }: { events: Timeline }) {
  return (
    <Card title="Timeline">
      {events.length === 0 ? <p class="quiet">Nothing yet.</p> : null}
      <ul class="plain feed">
        {events.map((event) => (
          <li key={`${event.kind}${event.at}${event.kind === 'unlock' ? event.achievementId : event.leaderboardId}`}>
            {event.kind === 'unlock' ? (
              <>
                Unlocked <a href={`/achievements/${event.achievementKey}`}>{event.achievementName}</a>
              </>
            ) : event.kind === 'record' ? (
              <>
                Set the record on <BoardLink {...event} />
              </>
            ) : (
              <>
                Reached rank {event.newRank} on <BoardLink {...event} />
              </>
            )}{' '}
            <span class="quiet">
              <Time at={event.at} ago />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  )
}
