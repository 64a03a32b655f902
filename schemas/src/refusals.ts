/**
 * All refusals of the service. The body has only the sentence, {"error": "…"}, in which the details replace `%s` in
 * order; the header `X-Error-Code` has the name. Clients compare it, so a name never changes its meaning. `when`
 * explains it at /docs/errors; `example` is a complete sentence if the message has `%s`.
 */
export const refusals = {
  request_invalid: {
    status: 400,
    message: '%s.',
    when:
      'A parameter is malformed, out of range, empty, missing or given twice. The sentence names it, the allowed ' +
      'values and the value. Also a body of an edit or rating with a repeated field, a field `__proto__`, ' +
      '`constructor` or `prototype`, or more than 32 levels',
    example: 'days must be an integer from 1 to 30; got "0".'
  },
  request_malformed: {
    status: 400,
    message: 'The request is not valid HTTP/1.1: %s.',
    when:
      'The bytes are not a request, or its target is neither a path nor an http URI with the host of the header; the ' +
      'connection is closed',
    example: 'The request is not valid HTTP/1.1: the host in its target is empty.'
  },
  host_invalid: {
    status: 400,
    message: 'The Host header is not exactly one host with an optional port.',
    when: 'Two of them, an empty one, or one with other characters'
  },
  host_missing: {
    status: 400,
    message: 'The request names no host; HTTP/1.1 asks for exactly one Host header.',
    when: 'No Host header; HTTP/1.0 may leave it out'
  },
  json_malformed: { status: 400, message: 'The body is not valid JSON.', when: 'Also an empty one' },
  body_encoding_invalid: {
    status: 400,
    message: 'The body is not valid UTF-8.',
    when: 'Latin-1, for example; with `charset=iso-8859-1` it is 415'
  },
  query_encoding_invalid: {
    status: 400,
    message: 'The query is not valid percent-encoded UTF-8.',
    when: '`%zz`, `%ff` in a query'
  },
  path_encoding_invalid: {
    status: 400,
    message: 'The path is not valid percent-encoded UTF-8.',
    when: '`%zz`, `%ff` in a path, known or not'
  },
  window_invalid: {
    status: 400,
    message: '%s.',
    when: '`to` alone, `from` not before `to`, either together with `days` or `hours`',
    example: 'to needs from; give both, or from alone for a window that ends now.'
  },
  answer_too_large: {
    status: 400,
    message: '%s.',
    when: 'More than 1,000,000 points; the sentence names a resolution that fits',
    example: 'The window holds more than 1,000,000 points; ask for a resolution of 300 or more.'
  },
  session_key_missing: {
    status: 400,
    message: 'A session key is needed: as header X-Session-Key, or as text in the field sessionKey of the body.',
    when: 'Edits and ratings. An empty header is none. The header wins over the body'
  },
  session_invalid: {
    status: 401,
    message: 'The session is invalid or has ended; sign in again.',
    when:
      'The auth service rejects the key, or the key is invalid: more than 512 characters, or characters other than ' +
      'visible ASCII'
  },
  profile_not_owned: {
    status: 403,
    message: 'Only its owner can edit a profile; the session is not of %s.',
    when: 'Whether such a user is known or not',
    example: 'Only its owner can edit a profile; the session is not of "CalmOtter".'
  },
  username_unstable: {
    status: 403,
    message:
      'The username %s has characters that only look like others; change it at the auth service, then sign in again.',
    when:
      "A name that Unicode's NFKC changes, as it is or in lower case (`ﬁsh` would have the key of `fish`), that has " +
      'more characters in lower case (`İx`), or none that is visible. Reads answer `viewer: null`',
    example:
      'The username "ﬁsh" has characters that only look like others; change it at the auth service, then sign in again.'
  },
  chat_link_missing: {
    status: 403,
    message: 'social_links needs a chat profile that is linked and verified; give chat_profile_url first.',
    when: 'Checked on the profile as edited, before the links themselves'
  },
  chat_profile_unknown: {
    status: 400,
    message: 'chat_profile_url %s.',
    when: 'The address is not a profile of the chat platform, or its account does not exist',
    example: 'chat_profile_url is of no account: "https://chat.example.org/users/12345678901234567".'
  },
  chat_away: {
    status: 502,
    message: 'The chat platform is unavailable at the moment; nothing was changed.',
    when: 'Also where none is configured'
  },
  rating_of_self: { status: 400, message: 'Users cannot rate their own profile.', when: 'However the name is spelt' },
  title_unknown: {
    status: 404,
    message: 'No title %s is known.',
    when: 'No title has this id',
    example: 'No title 4d5307e6 is known.'
  },
  achievement_unknown: {
    status: 404,
    message: 'No achievement %s is known; /api/achievements lists their keys.',
    when: 'No achievement shows this key',
    example: 'No achievement "halo-day" is known; /api/achievements lists their keys.'
  },
  player_unknown: {
    status: 404,
    message: 'No player %s is known.',
    when: 'Only on pages of the site: no board ever had an entry of this name',
    example: 'No player "ann" is known.'
  },
  page_beyond_end: {
    status: 404,
    message: 'There is no page %s; the last one is page %s.',
    when: 'Only on pages of the site: the list is shorter, perhaps by now',
    example: 'There is no page 9; the last one is page 2.'
  },
  leaderboard_unknown: {
    status: 404,
    message: 'No leaderboard %s of %s is known.',
    when: 'No list and no entry ever mentioned it',
    example: 'No leaderboard 7 of "Halo 3" is known.'
  },
  leaderboard_not_yet_seen: {
    status: 404,
    message: 'Leaderboard %s of %s was first seen at %s; there is no board as of %s.',
    when: "`asOf`, or `from` of a comparison, before the board's first sight",
    example:
      'Leaderboard 7 of "Halo 3" was first seen at 2026-03-14T20:00:00.000Z; there is no board as of ' +
      '2026-03-01T00:00:00.000Z.'
  },
  leaderboard_not_yet_known: {
    status: 404,
    message: 'Nothing about leaderboard %s of %s as of %s was recorded by %s; give a later asOf, or a later knownAt.',
    when: '`knownAt` before anything about the board, as of `asOf`, was recorded',
    example:
      'Nothing about leaderboard 1 of "Halo 3" as of 2026-01-01T00:00:00.000Z was recorded by ' +
      '2026-01-01T00:00:00.000Z; give a later asOf, or a later knownAt.'
  },
  known_at_unsupported: {
    status: 400,
    message: 'knownAt is not a parameter of %s, but of %s; leave it out.',
    when: '`knownAt` of an endpoint that does not take it',
    example: 'knownAt is not a parameter of /api/records/recent, but of /api/network-stats/online-24h; leave it out.'
  },
  instant_in_future: {
    status: 400,
    message: '%s is in the future: %s; give an instant up to now.',
    when: '`asOf`, `from`, `to` of a board, `knownAt`',
    example: 'asOf is in the future: 2062-03-14T20:00:00.000Z; give an instant up to now.'
  },
  cursor_invalid: {
    status: 400,
    message:
      '%s is not a cursor of this feed: %s; begin with after=start, or continue with the cursor of an answer to the ' +
      'same filter.',
    when:
      'The cursor is malformed, belongs to another filter, or is ahead of all recorded changes; the sentence says ' +
      'which. Of a stream, `after` or the header `Last-Event-ID`',
    example:
      'after is not a cursor of this feed: it is broken; begin with after=start, or continue with the cursor of an ' +
      'answer to the same filter.'
  },
  user_unknown: {
    status: 404,
    message: 'No user %s is known.',
    when: 'Neither presence, an edit, nor a verified session named the user; a player name on a board is not a user',
    example: 'No user "CalmOtter" is known.'
  },
  game_unknown: {
    status: 404,
    message: 'No game %s is known%s.',
    when:
      'No title has this name or id; of `/api/game/…` also a title that no page described yet. The sentence has the ' +
      'three nearest names',
    example: 'No game "Halo 33" is known; the nearest: "Halo 3", "Halo 2", "Halo".'
  },
  path_unknown: {
    status: 404,
    message: 'There is nothing at %s; /docs lists what there is.',
    when: 'Paths are case-sensitive; a trailing slash is ignored, a doubled one is not',
    example: 'There is nothing at "/nope"; /docs lists what there is.'
  },
  dataset_unknown: {
    status: 404,
    message: 'There is no dataset %s; there are %s.',
    when: '`/api/data` lists the datasets',
    example: 'There is no dataset presence; there are network-count, title-count.'
  },
  dataset_file_unknown: {
    status: 404,
    message: 'There is no file %s; /api/data lists the files of every dataset.',
    when: 'A month before the first row or in the future, another name, or a revision that was replaced twice',
    example: 'There is no file title-count/2035-01.parquet; /api/data lists the files of every dataset.'
  },
  method_not_allowed: {
    status: 405,
    message: '%s is not answered here; allowed: %s.',
    when: 'Before the body is read',
    example: 'POST is not answered here; allowed: GET, HEAD, OPTIONS.'
  },
  request_timeout: { status: 408, message: 'The request did not arrive in time.', when: 'The connection is closed' },
  precondition_failed: {
    status: 412,
    message: 'The file is not the one that If-Match or If-Unmodified-Since names.',
    when: 'A file of a dataset, or an answer as a file, has changed; send the request without the condition'
  },
  body_too_large: {
    status: 413,
    message: 'The body is larger than %s bytes.',
    when: 'Nothing was done; send less',
    example: 'The body is larger than 65536 bytes.'
  },
  uri_too_long: {
    status: 414,
    message: 'The path or query is longer than %s characters.',
    when: 'Use `POST` where the operation has it, such as a roster search',
    example: 'The path or query is longer than 16384 characters.'
  },
  media_type_unsupported: {
    status: 415,
    message: 'The body must be application/json, not compressed; got %s.',
    when: 'Send `Content-Type: application/json` without `Content-Encoding`',
    example: 'The body must be application/json, not compressed; got "text/xml".'
  },
  range_unsatisfiable: {
    status: 416,
    message: 'The range begins beyond the end; the file has %s bytes.',
    when: '`Range` of a file of a dataset, or of an answer as a file',
    example: 'The range begins beyond the end; the file has 48211 bytes.'
  },
  expectation_failed: {
    status: 417,
    message: 'The only supported expectation is 100-continue.',
    when: 'Another value in `Expect`'
  },
  write_budget_spent: {
    status: 429,
    message: 'A user has at most %s edits and ratings per minute; retry in %s s.',
    when:
      'Where `WRITES_PER_MINUTE` is set. Every edit of the own profile and every rating with a valid session counts, ' +
      'also with invalid fields',
    example: 'A user has at most 30 edits and ratings per minute; retry in 2 s.'
  },
  session_checks_spent: {
    status: 429,
    message: 'At most %s unknown session keys are checked per minute and address; retry in %s s.',
    when:
      'More than `SESSION_CHECKS_PER_MINUTE`. Keys that identify a user do not count. Answers that only show more to ' +
      'a signed-in user are sent as to anybody instead',
    example: 'At most 120 unknown session keys are checked per minute and address; retry in 2 s.'
  },
  headers_too_large: { status: 431, message: 'The request headers are too large.', when: 'The connection is closed' },
  internal: {
    status: 500,
    message: 'The service failed; its log has the cause under request %s.',
    when: 'A defect; also when an earlier answer is in memory, which would hide it',
    example: 'The service failed; its log has the cause under request q3Zk0a1b.7f.'
  },
  not_ready: {
    status: 503,
    message: 'The service is not ready: %s.',
    when: '`/readyz` only',
    example: 'The service is not ready: the tables are being made.'
  },
  auth_away: {
    status: 503,
    message: 'The auth service is unavailable at the moment; retry shortly.',
    when: 'Unreachable, slow, broken, or none is configured'
  },
  erasure_in_progress: {
    status: 503,
    message: 'This user is being erased on request; retry shortly.',
    when: "An edit or a rating during the user's erasure"
  },
  engine_busy: {
    status: 503,
    message: 'Too many queries at once; retry shortly.',
    when: 'The bounded queue is full and no earlier answer is in memory'
  },
  data_damaged: {
    status: 503,
    message:
      'The data for this request is damaged on the disk of the service, which rebuilds tables by itself; its ' +
      'operator finds the rest by gamenet verify.',
    when:
      'An engine found bytes that differ from what it wrote; until the repair of a damaged table has ended, all that ' +
      'is computed from it; or a file of a dataset cannot be read'
  },
  disk_full: {
    status: 503,
    message:
      'The disk of the service is full or read-only, and nothing was stored; retry when its operator has mended it.',
    when:
      'An edit or a rating that PostgreSQL cannot store (SQLSTATE 53100, no space for its write-ahead log, or a file ' +
      'system that the kernel made read-only), a query without space for temporary files'
  },
  streams_per_address: {
    status: 429,
    message: 'Your address has %s streams, as many as it may have; close one, or wait until it has ended.',
    when:
      '`/api/stream`, before the stream begins (STREAMS_PER_ADDRESS). Clients of this machine and of untrusted ' +
      'proxies have no such limit',
    example: 'Your address has 200 streams, as many as it may have; close one, or wait until it has ended.'
  },
  connections_per_address: {
    status: 429,
    message: 'Your address has %s connections in use, as many as it may have; use them again, or close some.',
    when:
      'The first request of a further connection, which is closed (CONNECTIONS_PER_ADDRESS). Idle connections of the ' +
      'address are closed before',
    example: 'Your address has 1000 connections in use, as many as it may have; use them again, or close some.'
  },
  connections_full: {
    status: 503,
    message: 'All connections of the service are in use; retry shortly.',
    when:
      'The first request of a further connection, which is closed (CONNECTIONS_MAX). Idle connections are closed ' +
      'before'
  },
  exports_per_address: {
    status: 429,
    message: 'Your address has %s files at once, as many as it may have; read one to its end, or close it.',
    when:
      'A request for an answer as a file (EXPORTS_PER_ADDRESS). Clients of this machine and of untrusted proxies ' +
      'have no such limit',
    example: 'Your address has 8 files at once, as many as it may have; read one to its end, or close it.'
  },
  exports_full: {
    status: 503,
    message: 'The files of other clients take all the space for files; retry shortly, or ask for less.',
    when: 'A request for an answer as a file (EXPORT_BYTES_MAX), before its first byte'
  },
  streams_full: {
    status: 503,
    message: 'The service has as many streams as it can serve; retry shortly, or read /api/leaderboard-changes.',
    when: '`/api/stream`, before the stream begins'
  },
  engine_away: {
    status: 503,
    message: '%s cannot be reached at the moment; retry shortly.',
    when:
      'The tables or PostgreSQL are unavailable, and no earlier answer is in memory; otherwise the service sends ' +
      'that answer, with `Age` if newer data may exist',
    example: 'The tables cannot be reached at the moment; retry shortly.'
  }
} as const satisfies Record<string, { status: number; message: string; when: string; example?: string }>

export type RefusalCode = keyof typeof refusals

/** An expected error: thrown anywhere, answered in one place. */
export class Refusal extends Error {
  readonly status: number
  /** Seconds until a retry makes sense, for 429 and 503. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    readonly code: RefusalCode,
    readonly details: readonly string[] = [],
    options: { retryAfterSeconds?: number; cause?: unknown } = {}
  ) {
    let next = 0
    super(
      refusals[code].message.replace(/%s/g, () => details[next++] ?? ''),
      { cause: options.cause }
    )
    this.name = 'Refusal'
    this.status = refusals[code].status
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}
