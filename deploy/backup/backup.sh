#!/usr/bin/env bash
# Copies ClickHouse, PostgreSQL and Kafka of a service of several processes, in the order in which the copies fit together, or
# restores the copies. docs/operators/backup.md gives the reasons for the order.
#
#   backup.sh backup DIRECTORY     into a new directory; the service continues
#   backup.sh restore DIRECTORY    into empty servers; all processes of the service are stopped
#
#   CLICKHOUSE_URL, POSTGRES_URL   as of the service, or in files named by CLICKHOUSE_URL_FILE, POSTGRES_URL_FILE
#   CLICKHOUSE_SSL_CA_FILE         as of the service
#   CLICKHOUSE_COPY                where ClickHouse stores its copy; %s is replaced by a name. Default: Disk('backups', '%s')
#   STOP_INGEST, START_INGEST      commands that stop and start all processes `gamenet ingest`
#   COPY_KAFKA, RESTORE_KAFKA      commands that copy the brokers' disks into the folder $1, and back
set -euo pipefail
umask 077

refuse() {
  echo "$1" >&2
  exit 2
}

# Statements and addresses go through standard input: other users of the machine can read arguments.
clickhouse() {
  curl --silent --show-error --fail-with-body --config - --url-query "database=$database" <<END
url = "$server"
${CLICKHOUSE_SSL_CA_FILE:+cacert = "$CLICKHOUSE_SSL_CA_FILE"}
data-binary = "$1"
END
}

# Rises when a swap or a rollback moves a pointer.
pointers() { clickhouse 'SELECT max(version) FROM generation_pointer FORMAT TabSeparated'; }

copy() { echo "${CLICKHOUSE_COPY//%s/$name-$1}"; }

backup() {
  [[ ! -e $directory ]] || refuse "$directory exists; name a new directory."
  local draft=$directory.unfinished
  # A backup that failed leaves its draft.
  rm -rf "$draft"
  mkdir "$draft" "$draft/kafka"
  name=$(basename "$directory")-$(date -u +%Y%m%dT%H%M%SZ)-$$
  echo "$name" >"$draft/clickhouse"
  local moved
  moved=$(pointers)
  # Tables may be ahead of this bookkeeping; tables behind it would lack rows.
  local bookkeeping='checkpoint, dead_letter_decision, late_batch_taken, erasure, rebuild, rebuild_owner, generation_pointer'
  clickhouse "BACKUP TABLE ${bookkeeping//, /, TABLE } TO $(copy 1)"
  clickhouse "BACKUP TABLE late_batch TO $(copy 2)"
  clickhouse "BACKUP DATABASE \`$database\` EXCEPT TABLES $bookkeeping, late_batch TO $(copy 3)"
  # No order helps: a pointer without the record of its swap stays where it is, and what a rollback left is dropped before it is copied.
  if [[ $(pointers) != "$moved" ]]; then
    rm -r "$draft"
    refuse "A swap or a rollback of rebuilt tables moved a pointer during the copy. Repeat the backup when it has ended."
  fi
  # Also after a failure.
  trap 'sh -c "$START_INGEST"' EXIT
  sh -c "$STOP_INGEST"
  pg_dump --format=custom --no-owner --file="$draft/postgres.dump" --dbname="$POSTGRES_URL"
  sh -c "$COPY_KAFKA" copy-kafka "$draft/kafka"
  mv "$draft" "$directory"
  echo "The backup is in $directory, and on ClickHouse under $name-1 to $name-3."
}

restore() {
  [[ -e $directory/clickhouse ]] || refuse "$directory is not a complete backup: it has no file named clickhouse."
  name=$(<"$directory/clickhouse")
  sh -c "$RESTORE_KAFKA" restore-kafka "$directory/kafka"
  pg_restore --no-owner --exit-on-error --single-transaction --dbname="$POSTGRES_URL" "$directory/postgres.dump"
  for part in 1 2 3; do clickhouse "RESTORE ALL FROM $(copy $part)"; done
  echo "Start one gamenet ingest, then one gamenet projector, wait for gamenet status --wait, then start the others."
}

for each in CLICKHOUSE_URL POSTGRES_URL; do
  file=${each}_FILE
  [[ -z ${!file:-} ]] || printf -v "$each" %s "$(<"${!file}")"
  [[ -n ${!each:-} ]] || refuse "$each is not set: expected the address that the service has."
done
[[ $CLICKHOUSE_URL =~ ^(https?://[^/]+)/?([^/]*)$ ]] || refuse "CLICKHOUSE_URL: expected http(s)://server/database."
server=${BASH_REMATCH[1]}
database=${BASH_REMATCH[2]:-default}
CLICKHOUSE_COPY=${CLICKHOUSE_COPY:-"Disk('backups', '%s')"}
if [[ $POSTGRES_URL =~ ^([^/]*//[^:@/]*):([^@]*)(@.*)$ ]]; then
  PGPASSWORD=$(printf %b "${BASH_REMATCH[2]//%/\\x}")
  export PGPASSWORD
  POSTGRES_URL=${BASH_REMATCH[1]}${BASH_REMATCH[3]}
fi
directory=${2:-}
case "${1:-} $#" in
  'backup 2') : "${STOP_INGEST:?}" "${START_INGEST:?}" "${COPY_KAFKA:?}" && backup ;;
  'restore 2') : "${RESTORE_KAFKA:?}" && restore ;;
  *) refuse 'usage: backup.sh backup|restore DIRECTORY' ;;
esac
