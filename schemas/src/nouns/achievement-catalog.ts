import {
  boardGames,
  boardOf,
  boards,
  comeback,
  commentsGiven,
  daysSeen,
  fiveStars,
  gamesOnOneDay,
  gamesPlayed,
  newYear,
  played,
  playedGame,
  playedOnOneDay,
  profileSays,
  type Rule,
  ranked,
  ratingsGiven,
  ratingsReceived,
  recordKept,
  recordsHeld,
  sharedFirst,
  starsReceived,
  weekend
} from './achievement-rules.js'

/*
 * The achievements there are. An id and a key are never changed and never given to another; points count as they were
 * when it was reached.
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
  /** Shown only to users who have unlocked it. */
  readonly isHidden?: true
  readonly rule: Rule
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
  network(18, 'all-rounder', 'All-Rounder', 'Have stood on 10 leaderboards.', 20, boards(10)),
  network(19, 'everywhere', 'Everywhere at Once', 'Have stood on 50 leaderboards.', 50, boards(50)),
  network(20, 'top-hundred', 'Top Hundred', 'Stand among the first 100 of a board with more.', 5, ranked(100, 1, 101)),
  network(21, 'top-ten', 'Top Ten', 'Stand among the first 10 of a board with more.', 15, ranked(10, 1, 11)),
  network(22, 'podium', 'Podium', 'Stand among the first 3 of a board with 10 entries.', 25, ranked(3, 1, 10)),
  network(23, 'number-one', 'Number One', 'Lead a board with 10 entries.', 40, ranked(1, 1, 10)),
  network(24, 'five-tens', 'Five Tens', 'Have stood among the first 10 of 5 boards with more.', 40, ranked(10, 5, 11)),
  network(25, 'dynasty', 'Dynasty', 'Have led 5 boards with 10 entries.', 80, ranked(1, 5, 10)),
  network(26, 'globetrotter', 'Globetrotter', 'Have stood on boards of 5 games.', 25, boardGames(5)),

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
  network(
    36,
    'introduced',
    'Introduced',
    'Write something about yourself.',
    5,
    profileSays(`match(f.bio, '[^\\\\s\\\\pZ\\\\pC]')`)
  ),
  network(37, 'itsame', 'It’s Really Me', 'Verify your gamertag.', 10, profileSays('f.console_verified')),
  network(38, 'good-company', 'Good Company', 'Link your chat profile.', 5, profileSays("f.chat_profile_url != ''")),

  // Titles.
  title(39, 'halo-hour', 'Boots on the Ground', 'Play Halo 2 for an hour.', 5, HALO, playedGame(HALO, 1)),
  title(40, 'halo-day', 'Finish the Shift', 'Play Halo 2 for 24 hours.', 40, HALO, playedGame(HALO, 24)),
  title(41, 'battlefront-hour', 'Recruit', 'Play for an hour.', 5, BATTLEFRONT, playedGame(BATTLEFRONT, 1)),
  title(42, 'battlefront-day', 'Veteran', 'Play for 24 hours.', 40, BATTLEFRONT, playedGame(BATTLEFRONT, 24)),
  title(43, 'gotham-hour', 'Street Legal', 'Play for an hour.', 5, GOTHAM, playedGame(GOTHAM, 1)),
  title(44, 'gotham-board', 'Kudos', 'Stand on one of its boards.', 10, GOTHAM, boardOf('4d53004b')),
  title(
    45,
    'gotham-ten',
    'Racing Line',
    'Stand among the first 10 of a board.',
    25,
    GOTHAM,
    ranked(10, 1, 1, '4d53004b')
  ),
  title(46, 'counter-strike-hour', 'Go Go Go', 'Play for an hour.', 5, COUNTER_STRIKE, playedGame(COUNTER_STRIKE, 1)),
  title(47, 'skies-hour', 'Cleared for Take-Off', 'Play for an hour.', 5, SKIES, playedGame(SKIES, 1)),
  title(48, 'mechs-hour', 'Powered Up', 'Play for an hour.', 5, MECHS, playedGame(MECHS, 1)),

  // Hidden.
  hidden(49, 'auld-lang-syne', 'Auld Lang Syne', 'Play on the first day of a year.', 20, newYear()),
  hidden(50, 'tough-crowd', 'Tough Crowd', 'Be given a single star.', 10, starsReceived(1)),
  hidden(51, 'comeback', 'Comeback', 'Play again after a pause of a year.', 50, comeback(365)),
  hidden(52, 'shared-glory', 'Shared Glory', 'Stand on first place together with somebody else.', 30, sharedFirst())
]

/** An achievement by its id. */
export const achievementById: ReadonlyMap<number, Achievement> = new Map(achievements.map((each) => [each.id, each]))

/** Asks which of `{users}` have reached which of some achievements that have their facts in common: `user_key`, `reached`. */
export function ruleStatement(rules: readonly Achievement[]): string {
  const [first] = rules
  if (first === undefined || rules.some(({ rule }) => rule.facts !== first.rule.facts)) {
    throw new Error('Rules about different facts cannot be one statement.')
  }
  const pairs = rules.map(({ id, rule }) => `(toUInt16(${id}), CAST(${rule.reached}, 'Nullable(Int64)'))`)
  return `SELECT f.user_key AS user_key, arrayFilter(r -> r.2 IS NOT NULL, [${pairs.join(',\n')}]) AS reached
    FROM (${first.rule.facts}) AS f WHERE notEmpty(reached)`
}

type Details = readonly [id: number, key: string, name: string, description: string, points: number]

function network(...[id, key, name, description, points, rule]: [...Details, rule: Rule]): Achievement {
  return { id, key, name, description, points, groupId: 'network', rule }
}

function title(
  ...[id, key, name, description, points, game, rule]: [...Details, game: string, rule: Rule]
): Achievement {
  const groupId = achievementGroups.find((group) => group.displayName === game)?.groupId ?? 'network'
  return { id, key, name, description, points, groupId, rule }
}

function hidden(...details: [...Details, rule: Rule]): Achievement {
  return { ...network(...details), isHidden: true }
}
