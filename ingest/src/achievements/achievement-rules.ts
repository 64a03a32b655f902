import type { Achievement } from '@gamenet/schemas'
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
} from './rule-facts.js'

/** The rule of each achievement, by its key in the catalog. */
const rules: ReadonlyMap<string, Rule> = new Map([
  // Being there.
  ['first-light', daysSeen(1)],
  ['regular', daysSeen(7)],
  ['part-of-the-furniture', daysSeen(30)],
  ['resident', daysSeen(100)],
  ['year-round', daysSeen(365)],
  ['weekender', weekend()],
  // Time played.
  ['warmed-up', played(1)],
  ['ten-hours', played(10)],
  ['fifty-hours', played(50)],
  ['hundred-hours', played(100)],
  ['five-hundred-hours', played(500)],
  ['long-day', playedOnOneDay(5)],
  // Games played.
  ['sampler', gamesPlayed(3)],
  ['collector', gamesPlayed(10)],
  ['curator', gamesPlayed(25)],
  ['double-feature', gamesOnOneDay(3)],
  // Boards.
  ['on-the-board', boards(1)],
  ['all-rounder', boards(10)],
  ['everywhere', boards(50)],
  ['top-hundred', ranked(100, 1, 101)],
  ['top-ten', ranked(10, 1, 11)],
  ['podium', ranked(3, 1, 10)],
  ['number-one', ranked(1, 1, 10)],
  ['five-tens', ranked(10, 5, 11)],
  ['dynasty', ranked(1, 5, 10)],
  ['globetrotter', boardGames(5)],
  // Records.
  ['record-holder', recordsHeld(1)],
  ['hat-trick', recordsHeld(3)],
  ['one-for-the-books', recordKept(30)],
  // Ratings.
  ['first-word', ratingsGiven(1)],
  ['critic', ratingsGiven(10)],
  ['well-spoken', commentsGiven(1)],
  ['noticed', ratingsReceived(1)],
  ['household-name', ratingsReceived(10)],
  ['five-stars', fiveStars(5)],
  // Oneself.
  ['introduced', profileSays(`match(f.bio, '[^\\\\s\\\\pZ\\\\pC]')`)],
  ['itsame', profileSays('f.console_verified')],
  ['good-company', profileSays("f.chat_profile_url != ''")],
  // Titles.
  ['halo-hour', playedGame('Halo 2', 1)],
  ['halo-day', playedGame('Halo 2', 24)],
  ['battlefront-hour', playedGame('Star Wars: Battlefront II', 1)],
  ['battlefront-day', playedGame('Star Wars: Battlefront II', 24)],
  ['gotham-hour', playedGame('Project Gotham Racing 2', 1)],
  ['gotham-board', boardOf('4d53004b')],
  ['gotham-ten', ranked(10, 1, 1, '4d53004b')],
  ['counter-strike-hour', playedGame('Counter-Strike', 1)],
  ['skies-hour', playedGame('Crimson Skies: High Road to Revenge', 1)],
  ['mechs-hour', playedGame('MechAssault', 1)],
  // Hidden.
  ['auld-lang-syne', newYear()],
  ['tough-crowd', starsReceived(1)],
  ['comeback', comeback(365)],
  ['shared-glory', sharedFirst()]
])

/** Returns the rule of an achievement. Throws if it has none. */
export function ruleOf({ key }: Achievement): Rule {
  const rule = rules.get(key)
  if (rule === undefined) throw new Error(`The achievement ${key} has no rule.`)
  return rule
}

/**
 * Returns the statement for the users of `{users}` who have reached achievements with the same facts: `user_key`,
 * `reached`.
 */
export function ruleStatement(some: readonly Achievement[]): string {
  const pairs = some.map((each) => ({ id: each.id, rule: ruleOf(each) }))
  const facts = pairs[0]?.rule.facts
  if (facts === undefined || pairs.some(({ rule }) => rule.facts !== facts))
    throw new Error('Rules with different facts cannot share a statement.')
  const reached = pairs.map(({ id, rule }) => `(toUInt16(${id}), CAST(${rule.reached}, 'Nullable(Int64)'))`)
  return `SELECT f.user_key AS user_key, arrayFilter(r -> r.2 IS NOT NULL, [${reached.join(',\n')}]) AS reached
    FROM (${facts}) AS f WHERE notEmpty(reached)`
}
