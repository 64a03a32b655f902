/*
 * event       a fact, in the past tense, about one thing at one instant; never changed
 * topic       a named part of the log, one noun: its schema, ordering key and instant in one value
 * position    (epoch, partition, offset) in a topic; the epoch rises when a topic is made anew
 * answer      the body of a 200; `OnlineHistory` is what `getOnlineHistory` answers
 * refusal     an expected "no", with its status and its sentence
 * name key    a name as it is compared "without case"
 */
export {
  AchievementCatalog,
  AchievementLeaderboard,
  NewUnlock,
  newUnlock,
  RecentUnlocks,
  revealedOf,
  type ShownGroup,
  shownGroups,
  UserAchievements,
  VeiledAchievement,
  veiled
} from './achievement.js'
export {
  type Achievement,
  type AchievementGroup,
  achievementById,
  achievementGroups,
  achievements,
  ruleStatement
} from './achievement-catalog.js'
export { AchievementUnlocked, achievementUnlockTopic } from './achievement-unlock.js'
export { loadCheckpoint, projectionCheckpoint } from './checkpoint-name.js'
export { type Decoded, decodeEvent, encodeEvent, type Provenance, type SealKeyOf } from './cloud-event.js'
export { COUNT_MAX, Count } from './count.js'
export { FoundTimes } from './entry-time.js'
export { FoundEntry } from './found-entry.js'
export { ImportRetracted, importRetractionTopic } from './import-retraction.js'
export { ImportAdvanced, importRunTopic } from './import-run.js'
export {
  INSTANTS_END_MS,
  Instant,
  instantOf,
  isStorableMs,
  millisecondsOf,
  RecordedAt,
  ShownInstant,
  shownInstant
} from './instant.js'
export {
  boardKey,
  LeaderboardDescribed,
  LeaderboardId,
  LeaderboardSummary,
  Leaderboards,
  leaderboardTopic
} from './leaderboard.js'
export { LeaderboardChange, LeaderboardChanges } from './leaderboard-change.js'
export { ComparedEntry, LeaderboardComparison } from './leaderboard-comparison.js'
export {
  BOARD_CHANGES,
  ENTRY_CHANGES,
  type EntryChange,
  Leaderboard,
  LeaderboardEntryChanged,
  leaderboardEntryTopic
} from './leaderboard-entry.js'
export {
  compareMeasures,
  compareRead,
  measureGap,
  type ReadMeasure,
  ranked,
  readMeasure,
  type Standing
} from './leaderboard-rank.js'
export { millisecondsOfRawScore, millisecondsOfTime, timeText } from './leaderboard-time.js'
export {
  haltOf,
  haltReason,
  type LogBatch,
  type LogHalt,
  type LogMessage,
  type LogPosition,
  type LogRecord,
  type PartitionExtent
} from './log-record.js'
export { Lobby, Matches, MatchesListed, MatchHistory, MatchStats, matchListTopic } from './match-list.js'
export { nameKey } from './name-key.js'
export {
  ActivitySummary,
  DailyOnline,
  LobbyHistory,
  NetworkCounted,
  networkCountTopic,
  OnlineHistory,
  RegisteredUsers
} from './network-count.js'
export { DailyPlayTime, PlayTime } from './play-time.js'
export { Player, SuggestedPlayers } from './player.js'
export { PlayerComparison } from './player-comparison.js'
export { FoundEntries, FoundRosters } from './player-entry.js'
export { PRESENCE_PERIOD_SECONDS_MAX, PRESENCE_STATES, PresenceSeen, presenceTopic } from './presence.js'
export {
  BIO_LENGTH_MAX,
  EditedProfile,
  Profile,
  ProfileChanged,
  ProfileSummary,
  profileTopic,
  SOCIAL_LINKS_MAX,
  SocialLink
} from './profile.js'
export { type RankGoal, rankGoals } from './rank-goal.js'
export { RankedMeasures } from './ranked-measure.js'
export {
  averageOf,
  COMMENT_LENGTH_MAX,
  PRIOR_VOTES,
  ProfileRated,
  RatingGiven,
  Reputation,
  ReputationTotals,
  ratingTopic
} from './rating.js'
export { LeaderboardRecords, RecentRecords } from './record-history.js'
export { Refusal, type RefusalCode, refusals } from './refusals.js'
export { SCRAPE_SOURCES, ScrapeRan, type ScrapeSource, scrapeTopic } from './scrape.js'
export { openSealed, readSealedValue, SEAL_KEY_BYTES, type Seal } from './seal.js'
export { Timeline } from './timeline.js'
export { Game, Games, TITLE_FEATURES, TitleDescribed, titleTopic } from './title.js'
export { OnlineUsers, TitleCounted, TitleOnlineHistory, TopGames, titleCountTopic } from './title-count.js'
export { TitleId } from './title-id.js'
export { type Lift, type Topic, topic } from './topic.js'
export { importableTopics, topics } from './topics.js'
export { UserGames } from './user-game.js'
export { UserScores } from './user-score.js'
export { USERNAME_LENGTH_MAX, Username } from './username.js'
export {
  CHANGED_CHANNEL,
  FILLS_LOCK,
  MIGRATION_LOCK,
  nameHashSql,
  PASSES_LOCK,
  PEOPLE_LOCK,
  RELAY_LOCK,
  WRITE_NOUNS,
  WriteChange
} from './write-side.js'
