import { z } from 'zod'
import { ShownInstant } from '../values/instant.js'
import { Count } from './count.js'

/** Periods of a calendar; a week begins on Monday. */
export const PERIODS = ['day', 'week', 'month', 'year'] as const
export type Period = (typeof PERIODS)[number]

const FirstDay = z.iso.date().describe('First day of the period, in the time zone of the request.')
const Mean = z.number().describe('Mean of the samples, one decimal.')

const SHARE =
  'Average divided by the average of users online on the network, 4 decimals; null for the network, and where that ' +
  'has no sample.'

/** One period of a title, or of a metric of the network. */
export const CalendarPeriod = z
  .object({
    date: FirstDay,
    titleId: z.string().nullable().describe('null: the network.'),
    name: z.string().describe('The game, or the metric of the network.'),
    peak: Count,
    peakAt: ShownInstant.describe('First instant of the peak.'),
    min: Count,
    average: Mean,
    samples: z.int(),
    gain: z
      .number()
      .nullable()
      .describe('Average minus the average of the period before, one decimal; null if that has no sample.'),
    gainPercent: z
      .number()
      .nullable()
      .describe('`gain` in percent of the average before, one decimal; null where that is 0 or missing.'),
    yearBefore: z
      .number()
      .nullable()
      .describe(
        'Average of the same period of the year before; of a week, 52 weeks before. null if that has no sample.'
      ),
    share: z.number().nullable().describe(SHARE),
    rolling: z
      .number()
      .nullable()
      .describe(
        'Mean of the samples of the last `rolling` periods, this one included, one decimal; null unless requested.'
      )
  })
  .meta({ id: 'CalendarPeriod' })
export type CalendarPeriod = z.infer<typeof CalendarPeriod>

/** The answer of `getCalendar`. */
export const Calendar = z.array(CalendarPeriod).meta({
  id: 'Calendar',
  description: 'Periods with a sample, oldest first; of one period in the order of the titles.'
})
export type Calendar = z.infer<typeof Calendar>

/** The answer of `getHourMatrix`. */
export const HourMatrix = z
  .array(
    z
      .object({
        weekday: z.int().min(1).max(7).describe('1: Monday, 7: Sunday.'),
        hour: z.int().min(0).max(23).describe('Hour of the day in the time zone of the request.'),
        average: z.number().describe('Mean of the means of the weeks, one decimal.'),
        spread: z
          .number()
          .describe('Standard deviation of the means of the weeks, one decimal; 0 of a single week says nothing.'),
        lowest: z.number().describe('Lowest mean of a week, one decimal.'),
        highest: z.number().describe('Highest mean of a week, one decimal.'),
        weeks: z.int().describe('Weeks with a sample in this hour.')
      })
      .meta({ id: 'HourOfWeek' })
  )
  .meta({ id: 'HourMatrix', description: 'Hours of the week with a sample, from Monday 0:00.' })
export type HourMatrix = z.infer<typeof HourMatrix>

/** The answer of `getTitleRanks`. */
export const TitleRanks = z
  .array(
    z
      .object({
        date: FirstDay,
        rank: z.int().describe('1: no title has a higher average; equal ones share a rank.'),
        titles: z.int().describe('Titles with a sample in the period.'),
        average: Mean
      })
      .meta({ id: 'TitleRank' })
  )
  .meta({ id: 'TitleRanks', description: 'Periods in which the title has a sample, oldest first.' })
export type TitleRanks = z.infer<typeof TitleRanks>

/** The answer of `getPeaks`. */
export const Peaks = z
  .array(
    z
      .object({
        titleId: z.string().nullable().describe('null: the network.'),
        name: z.string().describe('The game, or the metric of the network.'),
        peak: Count,
        peakAt: ShownInstant.describe('First instant of the peak.'),
        average: Mean,
        samples: z.int(),
        firstDay: z.iso.date().describe('First UTC day with a sample.'),
        lastDay: z.iso.date().describe('Last UTC day with a sample.')
      })
      .meta({ id: 'Peak' })
  )
  .meta({ id: 'Peaks', description: 'The network’s metrics, then games by peak, highest first.' })
export type Peaks = z.infer<typeof Peaks>
