import { instantOf, type LeaderboardEntryChanged } from '@gamenet/schemas'
import fc from 'fast-check'

const T0 = Date.UTC(2026, 2, 14, 22)

/** Few entries, instants and values, so that everything collides. */
const Who = fc.record({
  playerName: fc.constantFrom('A', 'a', 'b', 'Ä'),
  occurrence: fc.constantFrom(undefined, undefined, undefined, 2)
})
const When = fc.constantFrom(0, 0, 1, 2, 3, 1000, 60_000).map((ms) => ({ changedAt: instantOf(T0 + ms) }))
const Measure = fc.oneof(
  fc.constantFrom('5', '6', '1,000', '1000', '-3', 'x', '').map((rating) => ({ rating })),
  fc.constantFrom('5', '6', '1,000', '-3', 'x').map((rating) => ({ rating, isAscending: true as const })),
  fc
    .tuple(fc.constantFrom('', '0'), fc.integer({ min: 0, max: 3 }))
    .map(([zero, timeMs]) => ({ rating: `${zero}0:00.00${timeMs}`, timeMs }))
)
const Order = fc.record({
  order: fc.integer({ min: -2, max: 3 }),
  step: fc.integer({ min: -1, max: 3 }),
  rank: fc.constant(1)
})
type Place = Partial<Pick<LeaderboardEntryChanged, 'order' | 'step' | 'rank'>>
const AnyPlace: fc.Arbitrary<Place> = fc.oneof(Order, fc.record({ rank: fc.integer({ min: -1, max: 3 }) }), {
  arbitrary: fc.constant({}),
  weight: 2
})
const Details = fc.constantFrom({}, {}, { details: { car: 'x' } })

/** Any event of one board: scraped, stated or measured, or a removal, with or without the last values of the entry. */
export const BoardEvent = boardEvent(AnyPlace)

/** The same of a board whose entries all have order keys, as scraped ones do. */
export const OrderedEvent = boardEvent(Order)

function boardEvent(place: fc.Arbitrary<Place>): fc.Arbitrary<LeaderboardEntryChanged> {
  return fc.oneof(
    {
      arbitrary: fc
        .tuple(
          Who,
          When,
          Measure,
          place,
          Details,
          fc.constantFrom('new' as const, 'updated' as const, 'moved' as const)
        )
        .map(([who, when, measure, place, details, changeType]) =>
          eventOf({ ...who, ...when, ...measure, ...place, ...details, changeType })
        ),
      weight: 3
    },
    fc
      .tuple(Who, When, fc.oneof(fc.constant({}), Measure))
      .map(([who, when, measure]) => eventOf({ ...who, ...when, ...measure, changeType: 'removed' as const }))
  )
}

function eventOf({
  occurrence,
  ...event
}: Omit<LeaderboardEntryChanged, 'titleId' | 'leaderboardId' | 'occurrence'> & {
  readonly occurrence: number | undefined
}): LeaderboardEntryChanged {
  return { titleId: '4d530064', leaderboardId: 7, ...event, ...(occurrence === undefined ? {} : { occurrence }) }
}
