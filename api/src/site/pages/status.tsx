import type { CollectorStatus, Coverage } from '@gamenet/schemas'
import { z } from 'zod'
import { collectorStatus, coverage } from '../../routes/coverage.js'
import { Heat } from '../components/heat.js'
import { Card, Csv, Time } from '../components/marks.js'
import { TableCard } from '../components/table.js'
import { count, DAY_MS, dayText, groupedBy, msOf, percent, plural, spanText } from '../components/text.js'
import { isoDay } from '../values/iso.js'
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
          <TableCard
            title="Sources"
            rows={sources}
            columns={[
              ['Source', ({ source }) => source],
              [
                'Last update',
                ({ lastSuccessAt }) => (lastSuccessAt === null ? 'never' : <Time at={lastSuccessAt} ago />)
              ],
              ['Outcome', ({ lastOutcome }) => lastOutcome],
              ['#Gaps in 24 h', (each) => count(each.gaps)],
              ['#Missed', ({ gapSeconds }) => (gapSeconds === 0 ? '' : spanText(gapSeconds * 1000))]
            ]}
          />
          {[...groupedBy(gaps, ({ source }) => source)].map(([source, of]) => (
            <Card key={source} title={`Coverage of ${source}, ${DAYS} days`}>
              <Days gaps={of} toMs={resolved.gaps.toMs ?? 0} />
            </Card>
          ))}
          <TableCard
            title="What was missed"
            more={<Csv href={`/api/coverage?days=${DAYS}&format=csv`} />}
            rows={gaps.toSorted((a, b) => msOf(b.from) - msOf(a.from))}
            most={GAPS_SHOWN}
            empty={`Nothing in ${DAYS} days, since collecting began.`}
            columns={[
              ['Source', ({ source }) => source],
              ['From', ({ from }) => <Time at={from} />],
              ['To', ({ to }) => (to === null ? 'still' : <Time at={to} />)],
              ['#Length', ({ seconds }) => spanText(seconds * 1000)]
            ]}
          />
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
  const days = Array.from({ length: DAYS }, (_, index) => {
    const fromMs = msOf(isoDay(toMs - (DAYS - 1 - index) * DAY_MS))
    const missedMs = gaps.reduce((sum, gap) => {
      const endMs = gap.to === null ? toMs : msOf(gap.to)
      return sum + Math.max(0, Math.min(fromMs + DAY_MS, endMs) - Math.max(fromMs, msOf(gap.from)))
    }, 0)
    return { fromMs, share: missedMs / DAY_MS }
  })
  return (
    <Heat
      class="heat missed"
      label={`Days with gaps: ${days.filter(({ share }) => share > 0).length} of ${DAYS}`}
      width={DAYS * 8}
      height={18}
      size={[8, 17]}
      cells={days.map(({ fromMs, share }, index) => ({
        x: index * 8,
        y: 0,
        shade: share === 0 ? 0 : share < 0.1 ? 3 : 5,
        title: `${dayText(fromMs)}: ${share === 0 ? 'nothing missed' : `${percent(share)} missed`}`
      }))}
    />
  )
}
