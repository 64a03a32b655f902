import type { CollectorStatus, Coverage } from '@gamenet/schemas'
import { z } from 'zod'
import { collectorStatus, coverage } from '../../routes/coverage.js'
import { isoDay } from '../components/history.js'
import { Card, Table, Time } from '../components/marks.js'
import { count, DAY_MS, dayText, groupedBy, msOf, percent, plural, spanText } from '../components/text.js'
import { ask, page, tryAsk } from '../values/page.js'

const DAYS = 90
const GAPS_SHOWN = 100

/** `/status`: how old each source is, and what was missed when. */
export const statusPage = page({
  name: 'page-status',
  path: '/status',
  input: z.object({}),
  parts: () => ({
    status: ask<CollectorStatus>(collectorStatus),
    gaps: tryAsk<Coverage>(coverage, { days: DAYS })
  }),
  view: ({ status: { sources, history }, gaps = [] }, _input, { site, resolved }) => {
    const failing = sources.filter(({ lastOutcome }) => lastOutcome === 'failed')
    return {
      title: failing.length === 0 ? 'Collecting well' : `${plural(failing.length, 'source')} not answering`,
      description: 'The age of each source, and what the collector missed.',
      canonical: '/status',
      content: (
        <>
          <h1>Status</h1>
          <p class="note">
            {sources.length === 0
              ? 'Nothing was collected yet.'
              : failing.length === 0
                ? 'All sources answered at their last visit.'
                : `Not answering: ${failing.map(({ source }) => source).join(', ')}.`}
          </p>
          {history === null ? null : <p class="note">History is loading: {history.percent} %.</p>}
          <Card title="Sources">
            <Table label="Sources" head={['Source', 'Last update', 'Outcome', '#Gaps in 24 h', '#Missed']}>
              {sources.map(({ source, lastSuccessAt, lastOutcome, gaps: number, gapSeconds }) => (
                <tr key={source}>
                  <th scope="row">{source}</th>
                  <td>{lastSuccessAt === null ? 'never' : <Time at={lastSuccessAt} ago />}</td>
                  <td>{lastOutcome}</td>
                  <td class="number">{count(number)}</td>
                  <td class="number">{gapSeconds === 0 ? '' : spanText(gapSeconds * 1000)}</td>
                </tr>
              ))}
            </Table>
          </Card>
          {[...groupedBy(gaps, ({ source }) => source)].map(([source, of]) => (
            <Card key={source} title={`Coverage of ${source}, ${DAYS} days`}>
              <Days gaps={of} toMs={resolved.gaps.toMs ?? 0} />
            </Card>
          ))}
          <Card title="What was missed" more={<a href={`/api/coverage?days=${DAYS}&format=csv`}>CSV</a>}>
            {gaps.length === 0 ? <p>Nothing in {DAYS} days, since collecting began.</p> : <Gaps gaps={gaps} />}
          </Card>
          <p class="quiet">
            Version {site.version}. <a href="/docs">API</a> · <a href="/healthz">health</a>
          </p>
        </>
      )
    }
  }
})

/** A square a day: the more was missed, the stronger. */
function Days({ gaps, toMs }: { gaps: Coverage; toMs: number }) {
  const days = Array.from({ length: DAYS }, (_, index) => isoDay(toMs - (DAYS - 1 - index) * DAY_MS))
  const missed = days.map((day) => {
    const [from, to] = [msOf(day), msOf(day) + DAY_MS]
    return gaps.reduce(
      (sum, gap) =>
        sum + Math.max(0, Math.min(to, gap.to === null ? toMs : msOf(gap.to)) - Math.max(from, msOf(gap.from))),
      0
    )
  })
  return (
    <svg
      class="heat year"
      viewBox={`0 0 ${DAYS * 8} 18`}
      role="img"
      aria-label={`Days with gaps: ${missed.filter((ms) => ms > 0).length} of ${DAYS}`}
    >
      {days.map((day, index) => {
        const share = (missed[index] ?? 0) / DAY_MS
        return (
          <rect
            key={day}
            class={share === 0 ? 'shade-1' : share < 0.1 ? 'shade-3 missed' : 'shade-5 missed'}
            x={index * 8}
            y="0"
            width="7"
            height="16"
          >
            <title>{`${dayText(day)}: ${share === 0 ? 'nothing missed' : `${percent(share)} missed`}`}</title>
          </rect>
        )
      })}
    </svg>
  )
}

function Gaps({ gaps }: { gaps: Coverage }) {
  const newest = gaps.toSorted((a, b) => msOf(b.from) - msOf(a.from))
  return (
    <>
      <Table label="Gaps" head={['Source', 'From', 'To', '#Length']}>
        {newest.slice(0, GAPS_SHOWN).map(({ source, from, to, seconds }) => (
          <tr key={`${source}${from}`}>
            <th scope="row">{source}</th>
            <td>
              <Time at={from} />
            </td>
            <td>{to === null ? 'still' : <Time at={to} />}</td>
            <td class="number">{spanText(seconds * 1000)}</td>
          </tr>
        ))}
      </Table>
      {gaps.length > GAPS_SHOWN ? (
        <p class="quiet">
          The newest {GAPS_SHOWN} of {count(gaps.length)}.
        </p>
      ) : null}
    </>
  )
}
