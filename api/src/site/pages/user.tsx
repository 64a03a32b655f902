import type {
  DailyPlayTime,
  ProfileSummary,
  Reputation,
  Timeline,
  UserAchievements,
  UserGames,
  UserScores
} from '@gamenet/schemas'
import type { ComponentChildren } from 'preact'
import { z } from 'zod'
import type { Endpoint } from '../../answers/endpoint.js'
import { username } from '../../request/parameters.js'
import { userAchievements } from '../../routes/achievement.js'
import { playTime } from '../../routes/play-time.js'
import { profile } from '../../routes/profile.js'
import { reputation } from '../../routes/rating.js'
import { timeline } from '../../routes/timeline.js'
import { userGames } from '../../routes/user-game.js'
import { userScores } from '../../routes/user-score.js'
import { AchievementGroup, AchievementLine } from '../components/achievements.js'
import { CompareWith, Labelled } from '../components/form.js'
import { Heat, SHADES } from '../components/heat.js'
import { Ago, Card, Facts, GameLink, Icon, N, Name, PlayerLink, Time, UserLink } from '../components/marks.js'
import { BoardLink, GapToNext, gapText, measureText } from '../components/records.js'
import { Feed, FeedCard, Table, TableCard } from '../components/table.js'
import { count, DAY_MS, dayText, msOf, playText, plural, userPath } from '../components/text.js'
import { ask, type Page, page, tryAsk } from '../values/page.js'

const PLAY_DAYS = 365
const SHOWN = 10
const GAMES_SHOWN = 4
const RATINGS_MAX = 30
const userInput = z.object({ username: username() })

/** `/users/:username`: one user. People decide whether search engines find them: no page of a user is indexed. */
export const userPage = page({
  name: 'page-user',
  path: '/users/:username',
  input: userInput,
  parts: ({ username: name }) => ({
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
    const all = achievements?.achievements ?? []
    return {
      title: user.username,
      description: `${playText(user.playTime.totalMinutes)} played, ${plural(user.achievementScore, 'point')}.`,
      canonical: path,
      isUnlisted: true,
      islands: ['me'],
      content: (
        <>
          <Head user={user} rated={rated} all={all.length} />
          <PlayTime play={play} games={games?.games ?? []} path={path} />
          <div class="columns">
            <FeedCard
              title="Achievements"
              more={<a href={`${path}/achievements`}>All</a>}
              rows={all
                .filter(({ earned }) => earned)
                .sort((a, b) => msOf(b.unlocked_at ?? '') - msOf(a.unlocked_at ?? ''))
                .slice(0, SHOWN)}
              row={(each) => <AchievementLine achievement={each} />}
            />
            <TableCard
              title="Boards"
              more={scores?.scores.length ? <PlayerLink name={scores.playerName} /> : undefined}
              rows={scores?.scores ?? []}
              empty="On no board."
              columns={[
                ['Board', (score) => <BoardLink {...score} />],
                ['#Rank', ({ rank }) => count(rank)],
                ['#Value', ({ rating, timeMs, isTime }) => measureText(rating, timeMs, isTime)],
                ['Gap to next', (score) => <GapToNext {...score} />],
                ['#In 30 days', ({ isTime, change30d }) => changedText(isTime, change30d)]
              ]}
            />
            <Ratings rated={rated} path={path} name={user.username} />
            <FeedCard
              title="Timeline"
              rows={events ?? []}
              row={(event) => (
                <>
                  <EventText event={event} /> <Ago at={event.at} />
                </>
              )}
            />
          </div>
        </>
      )
    }
  }
})

type BelowProps<Body> = {
  /** The last segment of the address. */
  below: string
  title: string
  endpoint: Endpoint
  given?: Readonly<Record<string, number>>
  content: (found: Body) => ComponentChildren
}

/** Returns a page below that of a user, made of one answer. */
function pageBelow<Body>({ below, title, endpoint, given, content }: BelowProps<Body>): Page {
  return page({
    name: `page-user-${below}`,
    path: `/users/:username/${below}`,
    input: userInput,
    parts: ({ username: name }) => ({ found: ask<Body>(endpoint, { username: name, ...given }) }),
    view: ({ found }, { username: name }) => ({
      title: `${title} of ${name}`,
      canonical: `${userPath(name)}/${below}`,
      isUnlisted: true,
      content: (
        <>
          <p>
            <UserLink name={name} /> ›
          </p>
          <h1>{title}</h1>
          {content(found)}
        </>
      )
    })
  })
}

/** Pages below that of a user: all achievements by game, all games, all ratings. */
export const pagesBelowUser: readonly Page[] = [
  pageBelow<UserAchievements>({
    below: 'achievements',
    title: 'Achievements',
    endpoint: userAchievements,
    content: ({ score, achievements, groups }) => (
      <>
        <p class="headline">
          <N of={score} /> points, {count(achievements.filter(({ earned }) => earned).length)} of{' '}
          {count(achievements.length)}
        </p>
        {groups.map(({ unlockedCount, totalCount, earnedPoints, ...group }) => (
          <AchievementGroup
            key={group.groupId}
            {...group}
            facts={`${unlockedCount} of ${totalCount}, ${plural(earnedPoints, 'point')}`}
          >
            <progress max={totalCount} value={unlockedCount} aria-label={`Progress in ${group.displayName}`} />
          </AchievementGroup>
        ))}
      </>
    )
  }),
  pageBelow<UserGames>({
    below: 'games',
    title: 'Games',
    endpoint: userGames,
    content: ({ games, hasPlayTimeTracking }) => (
      <section class="card">
        {hasPlayTimeTracking ? null : <p class="quiet">This user’s play time has never been seen.</p>}
        <Table
          label="Games"
          rows={games}
          columns={[
            ['Game', (game) => <GameLink titleId={game.titleId} name={game.gameName} image={game.imageUrl ?? ''} />],
            ['#Played', ({ totalMinutes }) => playText(totalMinutes)],
            ['Last played', ({ lastPlayedAt }) => <Time at={lastPlayedAt} ago />]
          ]}
        />
      </section>
    )
  }),
  pageBelow<Reputation>({
    below: 'ratings',
    title: 'Ratings',
    endpoint: reputation,
    given: { feedbackLimit: RATINGS_MAX },
    content: (found) => (
      <>
        <p class="headline">{starsText(found)}</p>
        <section class="card">
          <Feedback rated={found} />
        </section>
      </>
    )
  })
]

function starsText({ average, ratingCount, priorOnly }: Reputation): string {
  if (priorOnly) return 'No ratings yet; new profiles start at 5 stars.'
  return `★ ${average.toFixed(2)} of ${plural(ratingCount, 'rating')}; new profiles start at 5`
}

function Head({ user, rated, all }: { user: ProfileSummary; rated: Reputation | undefined; all: number }) {
  const { profile: own, playTime: played } = user
  const name = own.display_name_override ?? user.username
  return (
    <section class="head">
      <div class="titled">
        <Icon image={undefined} name={user.username} size={56} />
        <div>
          <h1>
            <Name>{name}</Name>
          </h1>
          <p class="quiet">
            <Facts
              of={[
                name !== user.username && <Name>{user.username}</Name>,
                own.linked_gamertag !== '' && (
                  <>
                    gamertag <PlayerLink name={own.linked_gamertag} /> {own.console_verified ? '✓ verified' : ''}
                  </>
                ),
                stateOf(played),
                played.lastOnlineAt !== null && (
                  <>
                    last online <Time at={played.lastOnlineAt} ago />
                  </>
                )
              ]}
            />
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
      <CompareWith player={user.leaderboardPlayerName} />
      <p class="row">
        {own.social_links.map(({ platform, url }) => (
          <a key={url} href={url} rel="nofollow noopener noreferrer ugc">
            <Name>{platform}</Name>
          </a>
        ))}
        <a href="/me" id="own" hidden>
          Edit your profile
        </a>
      </p>
    </section>
  )
}

/** The change of a value; "new" for an entry that came since. */
function changedText(isTime: boolean, change: number | null): string {
  if (change === null) return 'new'
  return change === 0 ? '' : gapText(isTime, change, 0)
}

function stateOf({ currentGame, lastState, lastPlayedGame }: ProfileSummary['playTime']): string {
  if (currentGame != null) return `plays ${currentGame}`
  return `${lastState ?? 'never seen'}${lastPlayedGame == null ? '' : `, last in ${lastPlayedGame}`}`
}

type PlayTimeProps = { play: DailyPlayTime | undefined; games: UserGames['games']; path: string }

function PlayTime({ play, games, path }: PlayTimeProps) {
  return (
    <Card title="Play time" more={<a href={`${path}/games`}>All games</a>}>
      {play === undefined || play.totalMinutes === 0 ? (
        <p class="quiet">None seen in the last year.</p>
      ) : (
        <Days play={play} />
      )}
      <p class="row">
        {games
          .toSorted((a, b) => b.totalMinutes - a.totalMinutes)
          .slice(0, GAMES_SHOWN)
          .map(({ gameName, titleId, totalMinutes }) => (
            <span key={gameName}>
              <GameLink titleId={titleId} name={gameName} /> {playText(totalMinutes)}
            </span>
          ))}
      </p>
    </Card>
  )
}

/** A square a day, a column a week, over one year. */
function Days({ play: { days, totalMinutes, daysSeen } }: { play: DailyPlayTime }) {
  // The epoch was a Thursday.
  const dayOf = (ms: number) => ms / DAY_MS + 3
  const firstColumn = Math.floor((dayOf(msOf(days.at(-1)?.date ?? '1970-01-01')) - PLAY_DAYS + 1) / 7)
  const highest = Math.max(1, ...days.map((day) => day.totalMinutes))
  const shadeOf = (minutes: number) => (minutes === 0 ? 0 : 1 + Math.min(4, Math.floor((minutes / highest) * 5)))
  return (
    <Heat
      label={`${playText(totalMinutes)} on ${plural(daysSeen, 'day')}`}
      width={640}
      height={86}
      size={[12, 12]}
      cells={days
        .filter(({ isSeen }) => isSeen)
        .map(({ date, totalMinutes: minutes, games }) => ({
          x: (Math.floor(dayOf(msOf(date)) / 7) - firstColumn) * 12,
          y: (dayOf(msOf(date)) % 7) * 12,
          shade: shadeOf(minutes),
          title: [`${dayText(date)}: ${playText(minutes)}`, ...games.map(({ gameName }) => gameName)].join(', ')
        }))}
    >
      <pattern id="day" width="12" height="12" patternUnits="userSpaceOnUse">
        <rect opacity={SHADES[0]} width="11" height="11" />
      </pattern>
      <rect class="none" width="636" height="84" fill="url(#day)" />
    </Heat>
  )
}

function Ratings({ rated, path, name }: { rated: Reputation | undefined; path: string; name: string }) {
  return (
    <Card title="Ratings" more={<a href={`${path}/ratings`}>All</a>}>
      {rated === undefined ? <p class="quiet">Not readable at the moment.</p> : <Feedback rated={rated} />}
      <form id="rate" data-user={name} hidden>
        <Labelled label="Stars" type="number" name="stars" min="1" max="5" required />
        <Labelled label="Comment" name="comment" maxlength={500} />
        <button type="submit">Rate</button>
        <output />
      </form>
    </Card>
  )
}

function Feedback({ rated }: { rated: Reputation }) {
  return (
    <Feed
      rows={rated.feedback}
      empty={starsText(rated)}
      row={({ raterUsername, stars, comment, createdAt }) => (
        <>
          <span role="img" aria-label={`${stars} of 5 stars`}>
            {'★'.repeat(stars)}
          </span>{' '}
          <UserLink name={raterUsername} />
          {comment === null ? '' : ': '}
          <Name>{comment}</Name> <Ago at={createdAt} />
        </>
      )}
    />
  )
}

function EventText({ event }: { event: Timeline[number] }) {
  if (event.kind === 'unlock') {
    return (
      <>
        Unlocked <a href={`/achievements/${event.achievementKey}`}>{event.achievementName}</a>
      </>
    )
  }
  return (
    <>
      {event.kind === 'record' ? 'Set the record on' : `Reached rank ${event.newRank} on`} <BoardLink {...event} />
    </>
  )
}
