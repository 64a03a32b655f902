import type { Projection } from './projection.js'
import { importRun } from './projections/import-run.js'
import { networkCount } from './projections/network-count.js'
import { networkCountHour } from './projections/network-count-hour.js'
import { scrape } from './projections/scrape.js'
import { title } from './projections/title.js'
import { titleCount } from './projections/title-count.js'
import { titleCountDay } from './projections/title-count-day.js'
import { titleCountHour } from './projections/title-count-hour.js'
import { titleLatest } from './projections/title-latest.js'

/** Every projection; one that reads another's table stands behind it. */
export const projections: readonly Projection[] = [
  networkCount,
  networkCountHour,
  title,
  titleLatest,
  titleCount,
  titleCountHour,
  titleCountDay,
  scrape,
  importRun
]
