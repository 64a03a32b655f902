"""
Which requests the service refuses although each of their parameters and fields is valid by /openapi.json. Each rule is one
that the schema of a parameter or a field cannot state; any other such refusal is a finding.
"""

import re
from datetime import datetime, timezone
from unicodedata import category, normalize
from zoneinfo import ZoneInfo, available_timezones

import schemathesis

DAILY = "/api/network-stats/daily-online"
INSTANTS = ("from", "to", "since", "until", "asOf")
NEVER = datetime.max.replace(tzinfo=timezone.utc)
ZONES = {name.lower() for name in available_timezones()}


def is_exclusive(query):
    """Parameters that exclude each other: days or hours with from or to, offset with after."""
    pairs = [("days", "from"), ("days", "to"), ("hours", "from"), ("hours", "to"), ("offset", "after")]
    return any(query.keys() >= {*pair} for pair in pairs)


def is_incomplete(query):
    """A parameter that needs another: ids of boards repeat across games."""
    return any(name in query and other not in query for name, other in [("to", "from"), ("leaderboardId", "game")])


def is_reversed(query):
    """An end that is not after its start; a missing end is now."""
    start, end = (query.get("from", query.get("since")), query.get("to", query.get("until")))
    return start is not None and instant(start, query) >= (now() if end is None else instant(end, query))


def is_in_future(query):
    """A board is asked for a later instant than now."""
    return any(instant(query[name], query) > now() for name in INSTANTS if name in query)


def is_long(query):
    """A window may have more points than an answer."""
    return "from" in query


def is_outside_range(query):
    """An offset leaves the range of instants on its first or last day; 1970-01-01 is no day of a calendar."""
    return any(query.get(name, "").startswith(("1970-01-01", "2105-12-31")) for name in INSTANTS)


def has_missing_day(query):
    """A day such as 30 February."""
    return any(instant(query[name], query) == NEVER for name in INSTANTS if name in query)


def has_equal_names(query):
    """Two names that differ by case alone."""
    keys = [normalize("NFKC", normalize("NFKC", name.strip()).lower()) for name in query.get("names", "").split(",")]
    return len(keys) == 2 and keys[0] == keys[1]


def has_unknown_zone(query):
    """A name that the time zone database lacks; its names change with its releases."""
    return query.get("tz", "UTC").lower() not in ZONES


def has_invented_cursor(query):
    """A cursor that no page gave; it has a digest."""
    return query.get("after", "start") != "start"


def has_part_of_day(query):
    """A window of whole days that starts or ends within one."""
    ends = [instant(query[name], {}).astimezone(timezone.utc) for name in ("from", "to") if name in query]
    return any(f"{end:%H%M%S%f}" != "000000000000" for end in ends)


def has_invisible_name(fields):
    """A name without a visible character."""
    names = [fields.get(name) or "-" for name in ("display_name_override", "linked_gamertag")]
    return any(all(category(character)[0] in "CZ" for character in name) for name in names)


def has_odd_address(fields):
    """An address that only the parser of addresses can judge."""
    return not re.fullmatch(r"(https://[a-z0-9.-]+(/[a-z0-9./-]*)?)?", fields.get("avatar_url", ""))


def copies_avatar(fields):
    """The avatar of an account that is not linked."""
    return fields.get("sync_avatar_from_chat") is True


def always(_):
    """It depends on what is stored or configured."""
    return True


RULES = {
    "request_invalid": [is_exclusive, is_incomplete, is_outside_range, has_missing_day, has_equal_names, has_unknown_zone],
    "window_invalid": [is_exclusive, is_incomplete, is_reversed],
    "instant_in_future": [is_in_future],
    "answer_too_large": [is_long],
    "cursor_invalid": [has_invented_cursor],
}
FIELD_RULES = {
    "request_invalid": [has_invisible_name, has_odd_address, copies_avatar],
    "chat_profile_unknown": [always],
    "rating_of_self": [always],
}


def instant(text, query):
    try:
        at = datetime.fromisoformat(text.upper())
    except ValueError:
        return NEVER
    zone = timezone.utc if has_unknown_zone(query) else ZoneInfo(query.get("tz", "UTC"))
    return at if at.tzinfo else at.replace(tzinfo=zone)


def now():
    return datetime.now(timezone.utc)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    # Schemathesis counts 413 as an acceptance.
    if failure.code == "ST201":
        return response.status_code != 413
    if failure.code != "ST202":
        return True
    [code] = response.headers.get("x-error-code", [""])
    rules = RULES.get(code, []) + ([has_part_of_day] if case.operation.path == DAILY else [])
    fields = case.body if isinstance(case.body, dict) else {}
    reasons = [rule(case.query) for rule in rules] + [rule(fields) for rule in FIELD_RULES.get(code, [])]
    return not any(reasons)
