/*
 * The achievements there are. Each is reached when its rule says so: one SELECT over the read tables that gives
 * `user_key` and `reached_at` for those of `{users}` (Array(String), the user_keys that are looked at) who have reached it.
 * An id and a key are never changed and never given to another; points count as they were when it was reached.
 */

/** What achievements are shown together: those of the whole network, or those of one title. */
export type AchievementGroup = {
  readonly groupId: string
  readonly displayName: string
  readonly titleId: string | null
}

export type Achievement = {
  readonly id: number
  readonly key: string
  readonly name: string
  readonly description: string
  /** 5 to 100. */
  readonly points: number
  readonly groupId: string
  /** Shown to nobody before they have it, and then to them alone. */
  readonly isHidden?: true
  readonly rule: string
}

const HALO = 'Halo 2'
const BATTLEFRONT = 'Star Wars: Battlefront II'
const GOTHAM = 'Project Gotham Racing 2'
const COUNTER_STRIKE = 'Counter-Strike'
const SKIES = 'Crimson Skies: High Road to Revenge'
const MECHS = 'MechAssault'

export const achievementGroups: readonly AchievementGroup[] = [
  { groupId: 'network', displayName: 'Network', titleId: null },
  { groupId: '4d530064', displayName: HALO, titleId: '4d530064' },
  { groupId: '4c41001a', displayName: BATTLEFRONT, titleId: '4c41001a' },
  { groupId: '4d53004b', displayName: GOTHAM, titleId: '4d53004b' },
  { groupId: '4d530036', displayName: COUNTER_STRIKE, titleId: '4d530036' },
  { groupId: '4d530021', displayName: SKIES, titleId: '4d530021' },
  { groupId: '4d530017', displayName: MECHS, titleId: '4d530017' }
]

export const achievements: readonly Achievement[] = [
  // Being there.
  network(1, 'first-light', 'First Light', 'Be seen online.', 5, daysSeen(1)),
  network(2, 'regular', 'Regular', 'Be seen online on 7 days.', 10, daysSeen(7)),
  network(3, 'part-of-the-furniture', 'Part of the Furniture', 'Be seen online on 30 days.', 20, daysSeen(30)),
  network(4, 'resident', 'Resident', 'Be seen online on 100 days.', 40, daysSeen(100)),
  network(5, 'year-round', 'Year Round', 'Be seen online on 365 days.', 100, daysSeen(365)),
  network(6, 'weekender', 'Weekender', 'Play on a Saturday and on the Sunday after it.', 10, weekend()),

  // Time played.
  network(7, 'warmed-up', 'Warmed Up', 'Play for an hour.', 5, played(1)),
  network(8, 'ten-hours', 'Getting the Hang of It', 'Play for 10 hours.', 10, played(10)),
  network(9, 'fifty-hours', 'Well Worn', 'Play for 50 hours.', 20, played(50)),
  network(10, 'hundred-hours', 'Centurion', 'Play for 100 hours.', 40, played(100)),
  network(11, 'five-hundred-hours', 'Second Home', 'Play for 500 hours.', 80, played(500)),
  network(12, 'long-day', 'Long Day', 'Play for 5 hours on one day.', 15, playedOnOneDay(5)),

  // Games played.
  network(13, 'sampler', 'Sampler', 'Play 3 games.', 5, gamesPlayed(3)),
  network(14, 'collector', 'Collector', 'Play 10 games.', 20, gamesPlayed(10)),
  network(15, 'curator', 'Curator', 'Play 25 games.', 40, gamesPlayed(25)),
  network(16, 'double-feature', 'Double Feature', 'Play 3 games on one day.', 10, gamesOnOneDay(3)),

  // Boards.
  network(17, 'on-the-board', 'On the Board', 'Stand on a leaderboard.', 5, boards(1)),
  network(18, 'all-rounder', 'All-Rounder', 'Stand on 10 leaderboards.', 20, boards(10)),
  network(19, 'everywhere', 'Everywhere at Once', 'Stand on 50 leaderboards.', 50, boards(50)),
  network(20, 'top-hundred', 'Top Hundred', 'Stand among the first 100 of a board with more.', 5, ranked(100, 1, 101)),
  network(21, 'top-ten', 'Top Ten', 'Stand among the first 10 of a board with more.', 15, ranked(10, 1, 11)),
  network(22, 'podium', 'Podium', 'Stand among the first 3 of a board with 10 entries.', 25, ranked(3, 1, 10)),
  network(23, 'number-one', 'Number One', 'Lead a board with 10 entries.', 40, ranked(1, 1, 10)),
  network(24, 'five-tens', 'Five Tens', 'Stand among the first 10 of 5 boards with more.', 40, ranked(10, 5, 11)),
  network(25, 'dynasty', 'Dynasty', 'Lead 5 boards with 10 entries.', 80, ranked(1, 5, 10)),
  network(26, 'globetrotter', 'Globetrotter', 'Stand on boards of 5 games.', 25, boardGames(5)),

  // Records.
  network(27, 'record-holder', 'Record Holder', 'Hold the record of a board.', 25, recordsHeld(1)),
  network(28, 'hat-trick', 'Hat Trick', 'Have held the records of 3 boards.', 50, recordsHeld(3)),
  network(29, 'one-for-the-books', 'One for the Books', 'Hold a record for 30 days.', 60, recordKept(30)),

  // Ratings.
  network(30, 'first-word', 'First Word', 'Rate a profile.', 5, ratingsGiven(1)),
  network(31, 'critic', 'Critic', 'Rate 10 profiles.', 15, ratingsGiven(10)),
  network(32, 'well-spoken', 'Well Spoken', 'Leave a comment with a rating.', 5, commentsGiven(1)),
  network(33, 'noticed', 'Noticed', 'Be rated.', 5, ratingsReceived(1)),
  network(34, 'household-name', 'Household Name', 'Be rated by 10 users.', 20, ratingsReceived(10)),
  network(35, 'five-stars', 'Five Stars', 'Be given 5 stars by 5 users.', 25, fiveStars(5)),

  // Oneself.
  network(36, 'introduced', 'Introduced', 'Write something about yourself.', 5, profileSays("p.bio != ''")),
  network(37, 'itsame', 'It’s Really Me', 'Verify your gamertag.', 10, profileSays('p.console_verified')),
  network(38, 'good-company', 'Good Company', 'Link your chat profile.', 5, profileSays("p.chat_profile_url != ''")),

  // Titles.
  title(39, 'halo-hour', 'Boots on the Ground', 'Play Halo 2 for an hour.', 5, HALO, playedGame(HALO, 1)),
  title(40, 'halo-day', 'Finish the Shift', 'Play Halo 2 for 24 hours.', 40, HALO, playedGame(HALO, 24)),
  title(41, 'battlefront-hour', 'Recruit', 'Play for an hour.', 5, BATTLEFRONT, playedGame(BATTLEFRONT, 1)),
  title(42, 'battlefront-day', 'Veteran', 'Play for 24 hours.', 40, BATTLEFRONT, playedGame(BATTLEFRONT, 24)),
  title(43, 'gotham-hour', 'Street Legal', 'Play for an hour.', 5, GOTHAM, playedGame(GOTHAM, 1)),
  title(44, 'gotham-board', 'Kudos', 'Stand on one of its boards.', 10, GOTHAM, boardOf('4d53004b', 10_000)),
  title(45, 'gotham-ten', 'Racing Line', 'Stand among the first 10 of a board.', 25, GOTHAM, boardOf('4d53004b', 10)),
  title(46, 'counter-strike-hour', 'Go Go Go', 'Play for an hour.', 5, COUNTER_STRIKE, playedGame(COUNTER_STRIKE, 1)),
  title(47, 'skies-hour', 'Cleared for Take-Off', 'Play for an hour.', 5, SKIES, playedGame(SKIES, 1)),
  title(48, 'mechs-hour', 'Powered Up', 'Play for an hour.', 5, MECHS, playedGame(MECHS, 1)),

  // Hidden.
  hidden(
    49,
    'night-owl',
    'Night Owl',
    'Be seen online between 3 and 4 in the morning, UTC, on 5 days.',
    20,
    nightOwl(5)
  ),
  hidden(50, 'tough-crowd', 'Tough Crowd', 'Be given a single star.', 10, starsReceived(1)),
  hidden(51, 'comeback', 'Comeback', 'Play again after a pause of a year.', 50, comeback(365)),
  hidden(52, 'shared-glory', 'Shared Glory', 'Stand on first place together with somebody else.', 30, sharedFirst())
]

/** What 404 and bad ids need: an achievement by its id. */
export const achievementById: ReadonlyMap<number, Achievement> = new Map(achievements.map((each) => [each.id, each]))

type Facts = readonly [id: number, key: string, name: string, description: string, points: number]

function network(...[id, key, name, description, points, rule]: [...Facts, rule: string]): Achievement {
  return { id, key, name, description, points, groupId: 'network', rule }
}

function title(
  ...[id, key, name, description, points, game, rule]: [...Facts, game: string, rule: string]
): Achievement {
  const groupId = achievementGroups.find((group) => group.displayName === game)?.groupId ?? 'network'
  return { id, key, name, description, points, groupId, rule }
}

function hidden(...facts: [...Facts, rule: string]): Achievement {
  return { ...network(...facts), isHidden: true }
}

/*
 * The rules. A day's facts are reached at the last sighting of the day that made it so (`last_at`); an entry's at the
 * entry's last change; a rating's when it was given. Of n facts of a user the n-th oldest counts.
 */

/** The instant of the n-th oldest of a user's facts, for users who have that many. */
function nth(n: number, facts: string): string {
  return `SELECT f.user_key AS user_key, arrayElement(arraySort(groupArray(f.at)), ${n}) AS reached_at
    FROM (${facts}) AS f GROUP BY f.user_key HAVING count() >= ${n}`
}

/** The first day at which a sum over a user's days reaches a total: `amount` of a day `d`. */
function summed(amount: string, total: number): string {
  return `SELECT s.user_key AS user_key, min(s.at) AS reached_at
    FROM (
      SELECT d.user_key AS user_key, d.last_at AS at,
        sum(${amount}) OVER (PARTITION BY d.user_key ORDER BY d.day ROWS UNBOUNDED PRECEDING) AS total
      FROM presence_day AS d FINAL WHERE d.user_key IN {users: Array(String)}) AS s
    WHERE s.total >= ${total} GROUP BY s.user_key`
}

function daysWhere(condition: string): string {
  return `SELECT d.user_key AS user_key, d.last_at AS at FROM presence_day AS d FINAL
    WHERE d.user_key IN {users: Array(String)} AND ${condition}`
}

function daysSeen(days: number): string {
  return nth(days, daysWhere('d.online_sightings > 0'))
}

function played(hours: number): string {
  return summed('arraySum(mapValues(d.seconds))', hours * 3600)
}

function playedGame(game: string, hours: number): string {
  return summed(`d.seconds['${game}']`, hours * 3600)
}

function playedOnOneDay(hours: number): string {
  return nth(1, daysWhere(`arraySum(mapValues(d.seconds)) >= ${hours * 3600}`))
}

function gamesOnOneDay(games: number): string {
  return nth(1, daysWhere(`length(d.seconds) >= ${games}`))
}

function gamesPlayed(games: number): string {
  return nth(
    games,
    `SELECT d.user_key AS user_key, g.1 AS game, min(d.last_at) AS at FROM presence_day AS d FINAL
     ARRAY JOIN arrayMap(game -> tuple(game), mapKeys(d.seconds)) AS g
     WHERE d.user_key IN {users: Array(String)} GROUP BY user_key, game`
  )
}

function weekend(): string {
  const on = (day: number) =>
    daysWhere(`length(d.seconds) > 0 AND toDayOfWeek(d.day) = ${day}`).replace(
      'd.last_at AS at',
      'd.day AS day, d.last_at AS at'
    )
  return `SELECT sunday.user_key AS user_key, min(sunday.at) AS reached_at
    FROM (${on(7)}) AS sunday JOIN (${on(6)}) AS saturday
      ON saturday.user_key = sunday.user_key AND saturday.day + 1 = sunday.day
    GROUP BY sunday.user_key`
}

/** The entries that a user has on boards, by names that are known to be the user's. */
function entriesWhere(condition: string): string {
  return `SELECT u.user_key AS user_key, e.title_id AS title_id, e.leaderboard_id AS leaderboard_id, min(e.rank) AS rank,
      min(e.ts) AS at
    FROM user_player AS u JOIN (
      SELECT p.player_key AS player_key, p.title_id AS title_id, p.leaderboard_id AS leaderboard_id, p.rank AS rank,
        p.ts AS ts
      FROM player_entry AS p FINAL
      WHERE p.player_key IN (SELECT k.player_key FROM user_player AS k WHERE k.user_key IN {users: Array(String)})
        AND NOT p.is_gone) AS e ON e.player_key = u.player_key
    WHERE u.user_key IN {users: Array(String)} AND ${condition}
    GROUP BY user_key, title_id, leaderboard_id`
}

function boards(count: number): string {
  return nth(count, entriesWhere('true'))
}

function boardOf(titleId: string, rank: number): string {
  return nth(1, entriesWhere(`e.title_id = '${titleId}' AND e.rank <= ${rank}`))
}

function boardGames(count: number): string {
  return nth(
    count,
    `SELECT b.user_key AS user_key, b.title_id AS title_id, min(b.at) AS at FROM (${entriesWhere('true')}) AS b
     GROUP BY user_key, title_id`
  )
}

/** Standing on a rank or better on so many boards with so many entries. */
function ranked(rank: number, count: number, entries: number): string {
  return nth(
    count,
    `SELECT b.user_key AS user_key, b.at AS at FROM (${entriesWhere(`e.rank <= ${rank}`)}) AS b
     WHERE (b.title_id, b.leaderboard_id) IN (
       SELECT l.title_id, l.leaderboard_id FROM leaderboard_entry AS l FINAL
       WHERE NOT l.is_gone GROUP BY l.title_id, l.leaderboard_id HAVING count() >= ${entries})`
  )
}

function sharedFirst(): string {
  return nth(
    1,
    `SELECT b.user_key AS user_key, b.at AS at FROM (${entriesWhere('e.rank = 1')}) AS b
     WHERE (b.title_id, b.leaderboard_id) IN (
       SELECT l.title_id, l.leaderboard_id FROM leaderboard_entry AS l FINAL
       WHERE NOT l.is_gone AND l.rank = 1 GROUP BY l.title_id, l.leaderboard_id HAVING count() >= 2)`
  )
}

/** Every reign of a user over a board. */
function reigns(): string {
  return `SELECT u.user_key AS user_key, r.title_id AS title_id, r.leaderboard_id AS leaderboard_id, r.from_at AS at,
      r.to_at AS to_at
    FROM (
      SELECT h.title_id AS title_id, h.leaderboard_id AS leaderboard_id, g.1 AS player, g.2 AS from_at, g.3 AS to_at
      FROM record_history AS h FINAL ARRAY JOIN arrayZip(h.players, h.from_at, h.to_at) AS g) AS r
    JOIN player AS n ON n.player = r.player
    JOIN user_player AS u ON u.player_key = n.player_key
    WHERE u.user_key IN {users: Array(String)}`
}

function recordsHeld(count: number): string {
  return nth(
    count,
    `SELECT r.user_key AS user_key, min(r.at) AS at FROM (${reigns()}) AS r
     GROUP BY r.user_key, r.title_id, r.leaderboard_id`
  )
}

function recordKept(days: number): string {
  return nth(
    1,
    `SELECT r.user_key AS user_key, r.at + INTERVAL ${days} DAY AS at FROM (${reigns()}) AS r
     WHERE coalesce(r.to_at, now64(3, 'UTC')) >= r.at + INTERVAL ${days} DAY`
  )
}

function ratingsWhere(condition: string): string {
  return `SELECT r.user_key AS user_key, r.ts AS at FROM rating AS r FINAL
    WHERE r.user_key IN {users: Array(String)} AND ${condition}`
}

function ratingsReceived(count: number): string {
  return nth(count, ratingsWhere('true'))
}

function fiveStars(count: number): string {
  return nth(count, ratingsWhere('r.stars = 5'))
}

function starsReceived(stars: number): string {
  return nth(1, ratingsWhere(`r.stars = ${stars}`))
}

function ratingsGiven(count: number): string {
  return nth(
    count,
    `SELECT g.rater_key AS user_key, g.ts AS at FROM rating_given AS g FINAL
     WHERE g.rater_key IN {users: Array(String)}`
  )
}

function commentsGiven(count: number): string {
  return nth(
    count,
    `SELECT r.rater_key AS user_key, r.ts AS at FROM rating AS r FINAL
     WHERE r.comment IS NOT NULL AND (r.user_key, r.rater_key) IN (
       SELECT g.user_key, g.rater_key FROM rating_given AS g WHERE g.rater_key IN {users: Array(String)})`
  )
}

function profileSays(condition: string): string {
  return `SELECT p.user_key AS user_key, p.ts AS reached_at FROM profile AS p FINAL
    WHERE p.user_key IN {users: Array(String)} AND ${condition}`
}

function nightOwl(days: number): string {
  return nth(
    days,
    `SELECT s.user_key AS user_key, toDate(s.ts) AS day, min(s.ts) AS at FROM presence AS s FINAL
     WHERE s.user_key IN {users: Array(String)} AND s.is_online AND toHour(s.ts) = 3 GROUP BY user_key, day`
  )
}

function comeback(days: number): string {
  return `SELECT d.user_key AS user_key, min(d.at) AS reached_at
    FROM (
      SELECT p.user_key AS user_key, p.day AS day, p.last_at AS at,
        lagInFrame(p.day, 1, p.day) OVER (PARTITION BY p.user_key ORDER BY p.day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS before
      FROM presence_day AS p FINAL
      WHERE p.user_key IN {users: Array(String)} AND length(p.seconds) > 0) AS d
    WHERE d.day - d.before > ${days} GROUP BY d.user_key`
}
