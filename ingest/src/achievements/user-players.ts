/**
 * Selects the names on boards that belong to users, `player_key` by `user_key`: sighted gamertags, and verified ones of
 * profiles.
 */
export const USER_PLAYERS = `
  SELECT g.user_key AS user_key, g.gamertag_key AS player_key FROM {user_gamertag: Identifier} AS g
  UNION DISTINCT
  SELECT p.user_key, p.gamertag_key FROM {profile: Identifier} AS p FINAL
  WHERE p.console_verified AND p.gamertag_key != ''`
