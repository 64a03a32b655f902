/* Statements that an analyst must not run, one per line; `\n`, `\0` and `\u2003` are escapes. */

export const HOSTILE_STATEMENTS: readonly string[] = String.raw`
SELECT file('/etc/passwd')
SELECT FILE('/etc/passwd')
SELECT length(file('/etc/passwd'))
SELECT arrayMap(x -> file(x), ['/etc/passwd'])
SELECT * FROM file('/etc/passwd', LineAsString)
SELECT * FROM file('/etc/passwd', 'LineAsString', 'line String')
SELECT * FROM title_count AS t, file('/etc/passwd', LineAsString) AS f
SELECT * FROM title_count AS t LEFT JOIN file('/etc/passwd', LineAsString) AS f ON 1 = 1
SELECT (SELECT any(line) FROM file('/etc/passwd', LineAsString))
SELECT 1 WHERE 'a' IN (SELECT * FROM file('/etc/passwd', LineAsString))
WITH (SELECT any(line) FROM file('/etc/passwd', LineAsString)) AS secret SELECT secret
WITH secret AS (SELECT * FROM file('/etc/passwd', LineAsString)) SELECT * FROM secret
SELECT * FROM (SELECT * FROM (SELECT * FROM file('/etc/passwd', LineAsString)))
SELECT 1 UNION ALL SELECT * FROM file('/etc/passwd', LineAsString)
SELECT 1 EXCEPT SELECT * FROM file('/etc/passwd', LineAsString)
SELECT 1 INTERSECT SELECT * FROM file('/etc/passwd', LineAsString)
SELECT 1 LIMIT (SELECT length(file('/etc/passwd')))
SELECT 1 ORDER BY file('/etc/passwd')
SELECT 1 GROUP BY file('/etc/passwd')
SELECT count() FROM title_count HAVING file('/etc/passwd') = ''
SELECT count() FROM title_count PREWHERE file('/etc/passwd') = ''
SELECT count() OVER (PARTITION BY file('/etc/passwd')) FROM title_count
SELECT count() OVER w FROM title_count WINDOW w AS (ORDER BY file('/etc/passwd'))
SELECT count() FROM title_count QUALIFY file('/etc/passwd') = ''
SELECT online FROM title_count ARRAY JOIN [file('/etc/passwd')] AS a
SELECT online FROM title_count ORDER BY online WITH FILL FROM length(file('/etc/passwd'))
SELECT online AS o FROM title_count ORDER BY online WITH FILL INTERPOLATE (o AS length(file('/etc/passwd')))
SELECT * REPLACE (file('/etc/passwd') AS online) FROM title_count
SELECT * APPLY(file) FROM (SELECT '/etc/passwd' AS a)
SELECT * APPLY file FROM (SELECT '/etc/passwd' AS a)
SELECT COLUMNS('a') APPLY(x -> file(x)) FROM (SELECT '/etc/passwd' AS a)
SELECT COLUMNS(a) APPLY(file) FROM (SELECT '/etc/passwd' AS a)
SELECT t.* APPLY(file) FROM (SELECT '/etc/passwd' AS a) AS t
SELECT * EXCEPT (b) APPLY(sleep) FROM (SELECT 1 AS a, 2 AS b)
SELECT * APPLY(quantiles(0.5)) FROM title_count
SELECT fi/**/le('/etc/passwd')
SELECT file/**/('/etc/passwd')
SELECT /* file */ file /* ( */ ('/etc/passwd') -- )
SELECT ${'`file`'}('/etc/passwd')
SELECT\u00a0file('/etc/passwd')
SELECT file\u2003(\u3000'/etc/passwd')
SELECT * FROM\u2028file('/etc/passwd',\u200aLineAsString)
\ufeffSELECT file('/etc/passwd')
\u00a0DROP TABLE title_count
SELECT "file"('/etc/passwd')
SELECT sleep(3)
SELECT SLEEP(3)
SELECT sleepEachRow(1) FROM numbers(100)
SELECT arraySum(x -> sleep(x), [1, 2, 3])
SELECT if(1, sleep(1), 0)
SELECT hostName()
SELECT hostname()
SELECT fullHostName()
SELECT FQDN()
SELECT displayName()
SELECT serverUUID()
SELECT buildId()
SELECT uptime()
SELECT tcpPort()
SELECT getOSKernelVersion()
SELECT filesystemAvailable()
SELECT filesystemCapacity()
SELECT currentUser()
SELECT currentUser
SELECT current_user
SELECT CURRENT_USER
SELECT user()
SELECT USER
SELECT session_user
SELECT authenticatedUser()
SELECT currentRoles()
SELECT currentProfiles()
SELECT connectionId()
SELECT connection_id()
SELECT queryID()
SELECT initialQueryID()
SELECT getSetting('max_threads')
SELECT getSettingOrDefault('max_threads', 1)
SELECT getServerSetting('max_server_memory_usage')
SELECT getMergeTreeSetting('index_granularity')
SELECT getServerPort('tcp_port')
SELECT getMacro('shard')
SELECT getClientHTTPHeader('Authorization')
SELECT globalVariable('version')
SELECT @@version
SELECT showCertificate()
SELECT zookeeperSessionUptime()
SELECT errorCodeToName(1)
SELECT addressToLine(0)
SELECT addressToSymbol(0)
SELECT demangle('_ZN')
SELECT tid()
SELECT logTrace('x')
SELECT throwIf(1)
SELECT aggThrow(0.5)(1)
SELECT catboostEvaluate('/etc/passwd', 1)
SELECT evalMLMethod(1, 2)
SELECT naiveBayesClassifier('a', 'b')
SELECT aiGenerate('x', 'y')
SELECT structureToCapnProtoSchema('a Int8')
SELECT generateRandomStructure(5)
SELECT obfuscateQuery('SELECT 1')
SELECT fuzzQuery('SELECT 1')
SELECT formatQuery('SELECT 1')
SELECT formatRow('CSV', 1)
SELECT formatRowNoNewline('Template', 1)
SELECT reinterpretAsString(1)
SELECT reinterpret(1, 'AggregateFunction(uniq, UInt8)')
SELECT initializeAggregation('uniqState', 1)
SELECT finalizeAggregation(unhex('00'))
SELECT runningAccumulate(sumState(1))
SELECT arrayReduce('sum', [1, 2])
SELECT arrayReduceInRanges('sum', [(1, 2)], [1, 2])
SELECT arrayFold((a, x) -> a + x, [1], 0)
SELECT flameGraph([1, 2])
SELECT estimateCompressionRatio(1)
SELECT encrypt('aes-128-ecb', 'a', '1234567812345678')
SELECT decrypt('aes-128-ecb', 'a', '1234567812345678')
SELECT dictGet('d', 'a', 1)
SELECT dictGetOrDefault('d', 'a', 1, 2)
SELECT dictHas('d', 1)
SELECT dictGetHierarchy('d', 1)
SELECT regionToName(1)
SELECT joinGet('j', 'a', 1)
SELECT joinGetOrNull('j', 'a', 1)
SELECT hasColumnInTable('system', 'one', 'dummy')
SELECT multiMatchAny('a', ['(((((a*)*)*)*)*)'])
SELECT multiFuzzyMatchAny('a', 100, ['a'])
SELECT nested(['a'], [1])
SELECT __getScalar('x')
SELECT __actionName(1, 'x')
SELECT indexHint(1)
SELECT minSampleSizeConversion(0.2, 0.05, 0.8, 0.05)
SELECT rowNumberInAllBlocks()
SELECT mortal(1)
SELECT ${'`count\\n     Literal 1`'}(1)
SELECT ${'`x\\n   Literal 1`'} IN system.one
SELECT ${'`x\\n      Literal 1`'} IN system.one
SELECT ${'`x (children 1)\\n       Literal 1`'} IN system.one
SELECT 1 AS ${'`x\\n SelectQuery`'}
SELECT * FROM ${'`a\\n`'}
SELECT * FROM system.one
SELECT * FROM "system"."one"
SELECT * FROM ${'`system`.`one`'}
SELECT * FROM ${'`system.one`'}
SELECT * FROM system . one
SELECT * FROM system/**/./**/one
SELECT * FROM SYSTEM.one
SELECT * FROM system.settings
SELECT * FROM system.build_options
SELECT * FROM system.processes
SELECT * FROM system.query_log
SELECT * FROM system.users
SELECT * FROM system.disks
SELECT * FROM system.parts
SELECT * FROM system.columns
SELECT * FROM system.functions
SELECT * FROM system.environment
SELECT * FROM information_schema.tables
SELECT * FROM INFORMATION_SCHEMA.TABLES
SELECT * FROM stored.title_count
SELECT * FROM a.b.c
SELECT * FROM default.other
SELECT * FROM secret
SELECT title_count.online FROM secret AS title_count
SELECT 1 IN secret
SELECT 1 NOT IN secret
SELECT 1 GLOBAL IN secret
SELECT 1 IN (secret)
SELECT in(1, secret)
SELECT nullIn(1, secret)
SELECT globalNotIn(1, system.one)
SELECT 1 IN system.one
SELECT 0 IN system.one
SELECT 0 IN ${'`system`.`one`'}
SELECT inIgnoreSet(0, system.one)
SELECT arrayExists(x -> x IN system.one, [0])
WITH secret AS a SELECT 0 IN a
WITH system.one AS a SELECT 0 IN a
WITH system.one AS a SELECT * FROM a
WITH ${'`system.one`'} AS (SELECT 1) SELECT * FROM system.one
WITH one AS (SELECT 1) SELECT * FROM one, system.one
WITH RECURSIVE a AS (SELECT * FROM system.one UNION ALL SELECT * FROM a) SELECT * FROM a
SELECT EXISTS (SELECT * FROM system.one)
SELECT exists((SELECT * FROM secret))
SELECT x FROM title_count WHERE x = ANY (SELECT dummy FROM system.one)
SELECT * FROM title_count ASOF JOIN system.one ON 1 = 1
SELECT * FROM title_count PASTE JOIN system.one
SELECT * FROM title_count CROSS JOIN secret
SELECT * FROM title_count JOIN (SELECT * FROM secret) USING (a)
SELECT * FROM merge('system', '.*')
SELECT * FROM merge('.*')
SELECT * FROM merge(REGEXP('.*'), '.*')
SELECT * FROM remote('127.0.0.1', system.one)
SELECT * FROM remote('127.0.0.1', system, one)
SELECT * FROM remoteSecure('127.0.0.1', system.one)
SELECT * FROM cluster('default', system.one)
SELECT * FROM clusterAllReplicas('default', system.one)
SELECT * FROM url('http://127.0.0.1/', CSV)
SELECT * FROM url('file:///etc/passwd', LineAsString)
SELECT * FROM s3('http://127.0.0.1/a', 'CSV')
SELECT * FROM s3Cluster('default', 'http://127.0.0.1/a', 'CSV')
SELECT * FROM gcs('http://127.0.0.1/a', 'CSV')
SELECT * FROM azureBlobStorage('a', 'b', 'c')
SELECT * FROM hdfs('hdfs://127.0.0.1/a', 'CSV')
SELECT * FROM deltaLake('http://127.0.0.1/a')
SELECT * FROM iceberg('http://127.0.0.1/a')
SELECT * FROM icebergLocal('/etc')
SELECT * FROM hudi('http://127.0.0.1/a')
SELECT * FROM mysql('127.0.0.1:3306', 'a', 'b', 'c', 'd')
SELECT * FROM postgresql('127.0.0.1:5432', 'a', 'b', 'c', 'd')
SELECT * FROM mongodb('127.0.0.1:27017', 'a', 'b', 'c', 'd', 'e Int8')
SELECT * FROM redis('127.0.0.1:6379', 'a', 'a String')
SELECT * FROM sqlite('/etc/a.db', 'a')
SELECT * FROM odbc('DSN=a', 'b', 'c')
SELECT * FROM jdbc('jdbc:a', 'b', 'c')
SELECT * FROM executable('cat /etc/passwd', LineAsString, 'line String')
SELECT * FROM executable('a.sh', CSV, 'a Int8', (SELECT 1))
SELECT * FROM python('a')
SELECT * FROM Python(df)
SELECT * FROM dictionary('d')
SELECT * FROM input('a Int8')
SELECT * FROM generateRandom('a Int8')
SELECT * FROM format(CSV, '1')
SELECT * FROM null('a Int8')
SELECT * FROM values('a Int8', 1)
SELECT * FROM view(SELECT 1)
SELECT * FROM viewIfPermitted(SELECT 1 ELSE null('a Int8'))
SELECT * FROM viewExplain('EXPLAIN', '', (SELECT 1))
SELECT * FROM loop(system.one)
SELECT * FROM mergeTreeIndex(default, title_count)
SELECT * FROM mergeTreeParts(default, title_count)
SELECT * FROM fuzzQuery('SELECT 1')
SELECT * FROM fuzzJSON('a')
SELECT * FROM timeSeriesData('a')
SELECT * FROM zeros(10)
SELECT * FROM zeros_mt(10)
SELECT * FROM numbers_mt(10)
SELECT * FROM generateSeries(1, 10)
SELECT * FROM primes(10)
SELECT * FROM NUMBERS(10), file('/etc/passwd')
SELECT * FROM (EXPLAIN SELECT 1)
SELECT * FROM (EXPLAIN AST SELECT 1)
SELECT * FROM (EXPLAIN SYNTAX SELECT * FROM secret)
SELECT * FROM (SHOW TABLES)
SELECT * FROM (DESCRIBE TABLE secret)
EXPLAIN SELECT 1
EXPLAIN AST SELECT 1
EXPLAIN PIPELINE SELECT 1
EXPLAIN TABLE OVERRIDE mysql('a', 'b', 'c', 'd', 'e')
SHOW TABLES
SHOW DATABASES
SHOW SETTINGS LIKE '%'
SHOW CREATE TABLE title_count
SHOW PROCESSLIST
SHOW GRANTS
SHOW FUNCTIONS
DESCRIBE title_count
DESC (SELECT 1)
EXISTS TABLE secret
CHECK TABLE title_count
USE system
SET readonly = 0
SET max_threads = 64
SET ROLE DEFAULT
KILL QUERY WHERE 1
SYSTEM SHUTDOWN
SYSTEM FLUSH LOGS
SYSTEM STOP MERGES
INSERT INTO title_count SELECT 1
INSERT INTO FUNCTION file('/tmp/a.csv') SELECT 1
INSERT INTO title_count FROM INFILE '/etc/passwd' FORMAT CSV
INSERT INTO title_count VALUES (1)
CREATE TABLE a (b Int8) ENGINE = Memory
CREATE TABLE a ENGINE = File(CSV, '/etc/passwd')
CREATE DATABASE a
CREATE VIEW a AS SELECT 1
CREATE FUNCTION a AS (x) -> x
CREATE DICTIONARY a (b Int8) PRIMARY KEY b SOURCE(FILE(path '/etc/passwd' format 'CSV')) LAYOUT(FLAT()) LIFETIME(1)
CREATE USER a
CREATE NAMED COLLECTION a AS b = 1
ALTER TABLE title_count DELETE WHERE 1
ALTER TABLE title_count FREEZE
ATTACH TABLE a (b Int8) ENGINE = File(CSV, '/etc/passwd')
DETACH TABLE title_count
DROP TABLE title_count
DROP DATABASE default
TRUNCATE TABLE title_count
RENAME TABLE title_count TO a
EXCHANGE TABLES a AND b
OPTIMIZE TABLE title_count FINAL
UNDROP TABLE a
DELETE FROM title_count WHERE 1
UPDATE title_count SET online = 1 WHERE 1
GRANT ALL ON *.* TO default
REVOKE ALL ON *.* FROM default
BACKUP TABLE title_count TO Disk('a', 'b')
RESTORE TABLE title_count FROM Disk('a', 'b')
BEGIN TRANSACTION
COMMIT
WATCH title_count
EXECUTE AS default SELECT 1
PREPARE a AS SELECT 1
COPY title_count TO '/tmp/a'
SELECT 1; SELECT 2
SELECT 1; DROP TABLE title_count
SELECT 1;; SELECT 2
SELECT 1 /* ; */ ; SYSTEM SHUTDOWN
SELECT 1); DROP TABLE title_count; SELECT (1
SELECT 1) AS a; DROP TABLE title_count --
SELECT ';'; SELECT ';'
SELECT 1 FORMAT CSV; DROP TABLE title_count
SELECT 1 -- \n; DROP TABLE title_count
SELECT 1 PARALLEL WITH SELECT 2
SELECT 1 INTO OUTFILE '/tmp/a'
SELECT 1 INTO OUTFILE '/tmp/a' TRUNCATE
SELECT 1 INTO OUTFILE '/tmp/a' APPEND FORMAT CSV
SELECT 1 INTO OUTFILE '/tmp/a' AND STDOUT COMPRESSION 'gzip'
SELECT 1 UNION ALL SELECT 2 INTO OUTFILE '/tmp/a'
(SELECT 1) INTO OUTFILE '/tmp/a'
SELECT 1 FORMAT CSV
SELECT 1 FORMAT Null
(SELECT 1) FORMAT CSV
SELECT 1 FORMAT CSV SETTINGS readonly = 0
SELECT 1 SETTINGS readonly = 0
SELECT 1 SETTINGS max_memory_usage = 0
SELECT 1 SETTINGS max_execution_time = 0, max_threads = 64
SELECT 1 UNION ALL SELECT 2 SETTINGS max_threads = 64
SELECT * FROM (SELECT 1 SETTINGS readonly = 0)
SELECT * FROM (SELECT 1 SETTINGS param_a = 'x')
WITH a AS (SELECT 1 SETTINGS readonly = 0) SELECT * FROM a
SELECT (SELECT 1 SETTINGS allow_introspection_functions = 1)
SELECT 1 IN (SELECT 1 SETTINGS readonly = 0)
SELECT * FROM title_count SETTINGS additional_table_filters = {'a': 'b'}
SELECT * FROM numbers(10) SETTINGS max_block_size = 1
SELECT * FROM numbers(10, SETTINGS x = 1)
SELECT {a:Identifier} FROM title_count
SELECT * FROM {a:Identifier}
SELECT * FROM {a : Identifier}.{b:Identifier}
SELECT {a:String}
SELECT
FROM title_count
'
"
/*
;
SELECT 'a
SELECT 1 +
SELECT * FROM title_count WHERE
SELECT CAST(1, 'Nope')(
\0SELECT 1
SELECT 1\0; DROP TABLE title_count
`
  .trim()
  .split('\n')
  .map((line) =>
    line
      .replaceAll('\\n', '\n')
      .replaceAll('\\0', '\0')
      .replaceAll(/\\u([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  )

/** Statements that grow with a number. */
export const HUGE_STATEMENTS: readonly string[] = [
  `SELECT ${'('.repeat(20_000)}1${')'.repeat(20_000)}`,
  `SELECT ${'-'.repeat(30_000)}1`,
  `SELECT ${'['.repeat(3000)}${']'.repeat(3000)}`,
  `SELECT ${'NOT '.repeat(10_000)}1`,
  `${'SELECT * FROM ('.repeat(3000)}SELECT 1${')'.repeat(3000)}`,
  `SELECT ${'if(1,'.repeat(3000)}1${',2)'.repeat(3000)}`,
  `SELECT '${'x'.repeat(70_000)}'`,
  `SELECT '${'x'.repeat(10_000_000)}'`,
  `SELECT ${'('.repeat(1000)}file('/etc/passwd')${')'.repeat(1000)}`,
  `${'SELECT * FROM ('.repeat(100)}SELECT file('/etc/passwd')${')'.repeat(100)}`,
  `SELECT ${'CASE WHEN 1 THEN '.repeat(2000)}1${' END'.repeat(2000)}`
]

/** A file of somebody else, and a port that nobody may connect to: tests put theirs in their place. */
const PATH = '/etc/passwd'
const ADDRESS = '127.0.0.1:9'

/** Zones, types, quotes, parameters, and all that takes a path or an address. */
export const MORE_HOSTILE_STATEMENTS: readonly string[] = [
  ...['/proc/self/fd/0', '/proc/self/fd/1', '/proc/self/fd/9', '/proc/1/environ', '/proc/self/environ', PATH].map(
    (path) => `SELECT toDateTime(0, 'file:${path}')`
  ),
  `SELECT toTimeZone(now(), '${PATH}')`,
  `SELECT toDateTime(0, '../../../..${PATH}')`,
  `SELECT formatDateTime(now(), '%F', 'file:${PATH}')`,
  `SELECT dateDiff('day', now(), now(), 'file:${PATH}')`,
  `SELECT toString(now(), materialize('file:${PATH}'))`,
  `SELECT fromUnixTimestamp64Milli(0, 'file:${PATH}')`,
  `SELECT 1 SETTINGS session_timezone = 'file:${PATH}'`,
  `SELECT CAST(0, 'DateTime(\\'file:${PATH}\\')')`,
  `SELECT CAST(0, concat('DateTime64(3, ', char(39), 'file:${PATH}', char(39), ')'))`,
  `SELECT JSONExtract('{"a":1}', 'a', 'Array(DateTime(\\'file:${PATH}\\'))')`,
  `SELECT {a:DateTime('file:${PATH}')}`,
  `SELECT defaultValueOfTypeName('DateTime(\\'file:${PATH}\\')')`,
  `SELECT * FROM values('a DateTime(\\'file:${PATH}\\')', 0)`,
  `SELECT * FROM format(CSV, 'a DateTime(\\'file:${PATH}\\')', '0')`,
  `SELECT * FROM generateRandom('a DateTime(\\'file:${PATH}\\')') LIMIT 1`,
  `SELECT $$ ' $$, {a:String}`,
  `SELECT $x$ ' $x$, file('${PATH}')`,
  `SELECT 1 # '\n, {a:String}`,
  `SELECT 1 #! '\n, file('${PATH}')`,
  `SELECT ‘'’, {a:String}`,
  `SELECT “'”, file('${PATH}')`,
  `SELECT x'27', {a:String}`,
  `SELECT {a:Identifier}.b`,
  'SELECT {a:String} SETTINGS param_a = 1',
  `SELECT printf('%2000000000d', 1)`,
  `SELECT printf('%s%2000000000s', 'a', 'b')`,
  `SELECT repeat('a', 2000000000)`,
  `SELECT groupArray(number) FROM numbers(1000000000)`,
  `SELECT range(1000000000)`,
  `SELECT printf('%2000000000d', 1) SETTINGS max_untracked_memory = 10000000000`,
  `SELECT * FROM (SELECT printf('%2000000000d', 1) SETTINGS max_untracked_memory = 10000000000)`,
  `SELECT * FROM (SELECT uniqExact(number) FROM numbers(1000000000) SETTINGS max_memory_usage = 0, max_threads = 64)`,
  `SELECT * FROM (SELECT count() FROM numbers(100000000000) SETTINGS max_execution_time = 0)`,
  `SELECT * FROM (SELECT * FROM url('http://${ADDRESS}', 'LineAsString') SETTINGS readonly = 0)`,
  `SELECT file('${PATH}', 'x')`,
  `SELECT catboostEvaluate('${PATH}', 1.0)`,
  `SELECT detectLanguage(file('${PATH}'))`,
  `SELECT encrypt('aes-128-ecb', file('${PATH}'), '1234567812345678')`,
  ...['file', 'fileCluster'].map((name) => `SELECT * FROM ${name}('${PATH}', 'LineAsString')`),
  ...['url', 'urlCluster', 's3', 'gcs', 'oss', 'cosn', 'hdfs', 'azureBlobStorage', 'deltaLake', 'iceberg', 'hudi'].map(
    (name) => `SELECT * FROM ${name}('http://${ADDRESS}/a', 'LineAsString')`
  ),
  ...['deltaLakeLocal', 'icebergLocal', 'paimonLocal', 'sqlite', 'filesystem'].map(
    (name) => `SELECT * FROM ${name}('${PATH}', 'a')`
  ),
  ...['remote', 'remoteSecure', 'redis', 'arrowFlight'].map((name) => `SELECT * FROM ${name}('${ADDRESS}', 'a', 'b')`),
  ...['mysql', 'postgresql', 'mongodb'].map((name) => `SELECT * FROM ${name}('${ADDRESS}', 'a', 'b', 'c', 'd')`),
  `SELECT * FROM url('http://name-of-nobody.example/', 'LineAsString')`,
  `SELECT * FROM jdbc('http://${ADDRESS}', 'a', 'b')`,
  `SELECT * FROM executable('cat ${PATH}', 'LineAsString', 'a String')`,
  `SELECT * FROM dictionary('a')`,
  `INSERT INTO FUNCTION file('/tmp/a', 'CSV', 'a String') VALUES ('x')`,
  `INSERT INTO FUNCTION url('http://${ADDRESS}', 'CSV', 'a String') VALUES ('x')`,
  `BACKUP DATABASE gamenet_analyst TO File('/tmp/a')`,
  `CREATE TABLE a (a String) ENGINE = URL('http://${ADDRESS}')`,
  `SELECT 1 INTO OUTFILE '/tmp/a' TRUNCATE`,
  'SYSTEM SHUTDOWN'
]
