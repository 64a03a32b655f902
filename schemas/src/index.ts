/*
 * event       a fact, in the past tense, about one thing at one instant; never changed
 * topic       a named part of the log, one noun: its schema, ordering key and instant in one value
 * position    (epoch, partition, offset) in a topic; the epoch rises when a topic is recreated
 * answer      the body of a 200; `OnlineHistory` is the answer of `getOnlineHistory`
 * refusal     an expected error, with its status and its sentence
 * name key    a name normalized for comparison without case
 */
import './values/fault-texts.js'

export { abortable } from './async/abortable.js'
export { type Backoff, backoffMs, DEFAULT_BACKOFF, pause } from './async/backoff.js'
export { Mutex } from './async/mutex.js'
export { poll } from './async/poll.js'
export { SharedRun } from './async/shared-run.js'
export {
  type Calls,
  callThread,
  openCalls,
  type PostedError,
  restoredError,
  ThreadExited
} from './async/thread-calls.js'
export { abortedAfter, withTimeout } from './async/timeout.js'
export { withSignals } from './async/with-signals.js'
export {
  AchievementCatalog,
  AchievementHolders,
  AchievementLeaderboard,
  NewUnlock,
  newUnlock,
  RecentUnlocks,
  revealedOf,
  shownGroups,
  UserAchievements,
  VeiledAchievement,
  veiled
} from './nouns/achievement.js'
export {
  type Achievement,
  achievementById,
  achievementGroups,
  achievements
} from './nouns/achievement-catalog.js'
export { AchievementUnlocked, achievementUnlockTopic } from './nouns/achievement-unlock.js'
export {
  Calendar,
  CalendarPeriod,
  HourMatrix,
  PERIODS,
  Peaks,
  type Period,
  TitleRanks
} from './nouns/calendar.js'
export { COUNT_MAX, Count } from './nouns/count.js'
export { CollectorStatus, Coverage } from './nouns/coverage.js'
export { EntryMatch } from './nouns/entry-match.js'
export { eventLine, messageOfLine, recordedAtMs } from './nouns/event-line.js'
export { ImportRetracted, importRetractionTopic } from './nouns/import-retraction.js'
export { ImportAdvanced, importRunTopic } from './nouns/import-run.js'
export {
  boardKey,
  LeaderboardDescribed,
  LeaderboardId,
  LeaderboardSummary,
  Leaderboards,
  leaderboardTopic
} from './nouns/leaderboard.js'
export { LeaderboardChange, LeaderboardChanges } from './nouns/leaderboard-change.js'
export { ComparedEntry, LeaderboardComparison } from './nouns/leaderboard-comparison.js'
export { LeaderboardDays } from './nouns/leaderboard-day.js'
export {
  BOARD_CHANGES,
  ENTRY_CHANGES,
  type EntryChange,
  Leaderboard,
  LeaderboardEntryChanged,
  leaderboardEntryTopic
} from './nouns/leaderboard-entry.js'
export {
  compareMeasures,
  compareRead,
  measureGap,
  type ReadMeasure,
  ranked,
  readMeasure,
  type Standing
} from './nouns/leaderboard-rank.js'
export { millisecondsOfRawScore, millisecondsOfTime, timeText } from './nouns/leaderboard-time.js'
export { Lobby, Matches, MatchesListed, MatchHistory, MatchStats, matchListTopic } from './nouns/match-list.js'
export {
  ActivitySummary,
  DailyOnline,
  LobbyHistory,
  NetworkCounted,
  networkCountTopic,
  OnlineHistory,
  RegisteredUsers
} from './nouns/network-count.js'
export { DailyPlayTime, PlayTime } from './nouns/play-time.js'
export { Player, PlayerUsers, SuggestedPlayers } from './nouns/player.js'
export { PlayerComparison } from './nouns/player-comparison.js'
export { EntryMatches, RosterMatches } from './nouns/player-entry.js'
export { PRESENCE_PERIOD_SECONDS_MAX, PRESENCE_STATES, PresenceSeen, presenceTopic } from './nouns/presence.js'
export {
  BIO_LENGTH_MAX,
  EditedProfile,
  Profile,
  ProfileChanged,
  ProfileSummary,
  profileTopic,
  SOCIAL_LINKS_MAX,
  SocialLink
} from './nouns/profile.js'
export { type RankGoal, rankGoals } from './nouns/rank-goal.js'
export { RankedMeasures } from './nouns/ranked-measure.js'
export {
  averageOf,
  COMMENT_LENGTH_MAX,
  PRIOR_VOTES,
  ProfileRated,
  RatingGiven,
  Reputation,
  ReputationTotals,
  ratingTopic
} from './nouns/rating.js'
export { LeaderboardRecords, RecentRecords } from './nouns/record-history.js'
export { SCRAPE_SOURCES, ScrapeRan, type ScrapeSource, scrapeTopic } from './nouns/scrape.js'
export { SearchResults } from './nouns/search-result.js'
export { Sparklines } from './nouns/sparkline.js'
export { STREAM_KINDS, type StreamKind, StreamPage } from './nouns/stream.js'
export { TimeMatches } from './nouns/timed-entry.js'
export { Timeline } from './nouns/timeline.js'
export { Game, GameListed, Games, TITLE_FEATURES, TitleDescribed, titleTopic } from './nouns/title.js'
export { OnlineUsers, TitleCounted, TitleOnlineHistory, TopGames, titleCountTopic } from './nouns/title-count.js'
export { TitleStatusChanged, titleStatusTopic } from './nouns/title-status.js'
export { TitleSummary } from './nouns/title-summary.js'
export { importableTopics, topics } from './nouns/topics.js'
export { UserGames } from './nouns/user-game.js'
export { UserScores } from './nouns/user-score.js'
export { CHANGE_OVERLAP_VERSIONS, type DataChanges, type VersionedChange } from './ports/data-change.js'
export { conditionOf, type OffsetRange, rangeBetween } from './ports/offset-range.js'
export type { AbortOptions, Parameters, ReadTables } from './ports/read-tables.js'
export {
  FIRST_GENERATION,
  generationName,
  isTableDropped,
  type ReaderPosition,
  type ReadPositions,
  retryDropped,
  type ServingTables,
  tablesIn,
  withServing,
  withTableNames
} from './ports/serving-tables.js'
export {
  CHANGED_CHANNEL,
  FILLS_LOCK,
  MIGRATION_LOCK,
  NUMBERS_LOCK,
  nameHashSql,
  PASSES_LOCK,
  PEOPLE_LOCK,
  RELAY_LOCK,
  WRITE_NOUNS,
  WriteChange
} from './ports/write-side.js'
export type { WriteSide, WriteTransactions } from './ports/write-statements.js'
export { Refusal, type RefusalCode, refusals } from './refusals.js'
export { bytesText } from './values/bytes-text.js'
export { loadCheckpoint, projectionCheckpoint } from './values/checkpoint-name.js'
export { compareText } from './values/compare-text.js'
export { durationText } from './values/duration-text.js'
export { errorCode, errorMessage, messageWithCause } from './values/error-message.js'
export {
  INSTANTS_END_MS,
  Instant,
  instantOf,
  isStorableMs,
  millisecondsOf,
  RecordedAt,
  ShownInstant,
  shownInstant
} from './values/instant.js'
export { hasOwnKey, nameKey, titleKey } from './values/name-key.js'
export { parseJson } from './values/parse-json.js'
export { TitleId } from './values/title-id.js'
export { isVisible, USERNAME_LENGTH_MAX, Username } from './values/username.js'
export { lineText, visibleText } from './values/visible-text.js'
export { checkedText, withChecksum } from './values/with-checksum.js'
export { decodeEvent, encodeEvent, type Provenance, type SealKeyOf } from './wire/cloud-event.js'
export {
  type ConsumeRequest,
  type Heads,
  headsIn,
  headsOf,
  type LogBatch,
  type LogExtents,
  type LogMessage,
  type LogPosition,
  type LogRecord,
  type PartitionExtent,
  type StalledPartition,
  stallOf,
  stallReason
} from './wire/log-record.js'
export {
  type PackedMessages,
  packedRows,
  packMessages,
  requireCount,
  setHeader,
  unpackMessages
} from './wire/packed-messages.js'
export { openSealed, peopleOfValue, readSealedValue, SEAL_KEY_BYTES, type Seal } from './wire/seal.js'
export { type Topic, topic } from './wire/topic.js'
