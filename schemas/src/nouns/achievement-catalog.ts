/*
 * The catalog of achievements. Ids and keys never change and are never reused. An unlock keeps the points that the
 * achievement had when it was reached.
 */

/** Achievements that are shown together: those of the network, or those of one title. */
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
  network(1, 'first-light', 'First Light', 'Be seen online.', 5),
  network(2, 'regular', 'Regular', 'Be seen online on 7 days.', 10),
  network(3, 'part-of-the-furniture', 'Part of the Furniture', 'Be seen online on 30 days.', 20),
  network(4, 'resident', 'Resident', 'Be seen online on 100 days.', 40),
  network(5, 'year-round', 'Year Round', 'Be seen online on 365 days.', 100),
  network(6, 'weekender', 'Weekender', 'Play on a Saturday and on the Sunday after it.', 10),

  // Time played.
  network(7, 'warmed-up', 'Warmed Up', 'Play for an hour.', 5),
  network(8, 'ten-hours', 'Getting the Hang of It', 'Play for 10 hours.', 10),
  network(9, 'fifty-hours', 'Well Worn', 'Play for 50 hours.', 20),
  network(10, 'hundred-hours', 'Centurion', 'Play for 100 hours.', 40),
  network(11, 'five-hundred-hours', 'Second Home', 'Play for 500 hours.', 80),
  network(12, 'long-day', 'Long Day', 'Play for 5 hours on one day.', 15),

  // Games played.
  network(13, 'sampler', 'Sampler', 'Play 3 games.', 5),
  network(14, 'collector', 'Collector', 'Play 10 games.', 20),
  network(15, 'curator', 'Curator', 'Play 25 games.', 40),
  network(16, 'double-feature', 'Double Feature', 'Play 3 games on one day.', 10),

  // Boards.
  network(17, 'on-the-board', 'On the Board', 'Appear on a leaderboard.', 5),
  network(18, 'all-rounder', 'All-Rounder', 'Have stood on 10 leaderboards.', 20),
  network(19, 'everywhere', 'Everywhere at Once', 'Have stood on 50 leaderboards.', 50),
  network(20, 'top-hundred', 'Top Hundred', 'Reach the top 100 of a board with more.', 5),
  network(21, 'top-ten', 'Top Ten', 'Reach the top 10 of a board with more.', 15),
  network(22, 'podium', 'Podium', 'Reach the top 3 of a board with 10 entries.', 25),
  network(23, 'number-one', 'Number One', 'Lead a board with 10 entries.', 40),
  network(24, 'five-tens', 'Five Tens', 'Have reached the top 10 of 5 boards with more.', 40),
  network(25, 'dynasty', 'Dynasty', 'Have led 5 boards with 10 entries.', 80),
  network(26, 'globetrotter', 'Globetrotter', 'Have stood on boards of 5 games.', 25),

  // Records.
  network(27, 'record-holder', 'Record Holder', 'Hold the record of a board.', 25),
  network(28, 'hat-trick', 'Hat Trick', 'Have held the records of 3 boards.', 50),
  network(29, 'one-for-the-books', 'One for the Books', 'Hold a record for 30 days.', 60),

  // Ratings.
  network(30, 'first-word', 'First Word', 'Rate a profile.', 5),
  network(31, 'critic', 'Critic', 'Rate 10 profiles.', 15),
  network(32, 'well-spoken', 'Well Spoken', 'Leave a comment with a rating.', 5),
  network(33, 'noticed', 'Noticed', 'Be rated.', 5),
  network(34, 'household-name', 'Household Name', 'Be rated by 10 users.', 20),
  network(35, 'five-stars', 'Five Stars', 'Be given 5 stars by 5 users.', 25),

  // Oneself.
  network(36, 'introduced', 'Introduced', 'Write something about yourself.', 5),
  network(37, 'itsame', 'It’s Really Me', 'Verify your gamertag.', 10),
  network(38, 'good-company', 'Good Company', 'Link your chat profile.', 5),

  // Titles.
  title(39, 'halo-hour', 'Boots on the Ground', 'Play Halo 2 for an hour.', 5, HALO),
  title(40, 'halo-day', 'Finish the Shift', 'Play Halo 2 for 24 hours.', 40, HALO),
  title(41, 'battlefront-hour', 'Recruit', 'Play for an hour.', 5, BATTLEFRONT),
  title(42, 'battlefront-day', 'Veteran', 'Play for 24 hours.', 40, BATTLEFRONT),
  title(43, 'gotham-hour', 'Street Legal', 'Play for an hour.', 5, GOTHAM),
  title(44, 'gotham-board', 'Kudos', 'Appear on one of its boards.', 10, GOTHAM),
  title(45, 'gotham-ten', 'Racing Line', 'Reach the top 10 of a board.', 25, GOTHAM),
  title(46, 'counter-strike-hour', 'Go Go Go', 'Play for an hour.', 5, COUNTER_STRIKE),
  title(47, 'skies-hour', 'Cleared for Take-Off', 'Play for an hour.', 5, SKIES),
  title(48, 'mechs-hour', 'Powered Up', 'Play for an hour.', 5, MECHS),

  // Hidden.
  hidden(49, 'auld-lang-syne', 'Auld Lang Syne', 'Play on the first day of a year.', 20),
  hidden(50, 'tough-crowd', 'Tough Crowd', 'Be given a single star.', 10),
  hidden(51, 'comeback', 'Comeback', 'Play again after a pause of a year.', 50),
  hidden(52, 'shared-glory', 'Shared Glory', 'Share first place with somebody else.', 30)
]

/** An achievement by its id. */
export const achievementById: ReadonlyMap<number, Achievement> = new Map(achievements.map((each) => [each.id, each]))

type Details = readonly [id: number, key: string, name: string, description: string, points: number]

function network(...[id, key, name, description, points]: Details): Achievement {
  return { id, key, name, description, points, groupId: 'network' }
}

function title(...[id, key, name, description, points, game]: [...Details, game: string]): Achievement {
  const groupId = achievementGroups.find((group) => group.displayName === game)?.groupId ?? 'network'
  return { id, key, name, description, points, groupId }
}

function hidden(...details: Details): Achievement {
  return { ...network(...details), isHidden: true }
}
