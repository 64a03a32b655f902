import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'undici'
import { writeTitleCounts } from './count-files.js'
import { CannotMeasure, figure, type Measurement, quantile, scaled } from './measurement.js'
import { importTitlesAndNetwork, minuteNow, startQuietService, titleIds } from './quiet-service.js'
import { FIRST_COUNT, scrapeUntilAnswered, startPages } from './scrape-to-answer.js'

const ROUNDS = 5
const IMPORT_MINUTES = 1000
const SCRAPES = 40
const MINUTE_MS = 60_000
const COST_MAX = 1.05

/** A preloaded library: flushes return at once, and files are opened without O_SYNC and O_DSYNC, which LMDB uses. */
const NO_FLUSH = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>
int fsync(int f) { return 0; }
int fdatasync(int f) { return 0; }
int msync(void *a, size_t n, int flags) { return 0; }
int sync_file_range(int f, off64_t o, off64_t n, unsigned flags) { return 0; }
#define OPEN(NAME) int NAME(const char *path, int flags, ...) { \\
  static int (*real)(const char *, int, ...); va_list given; va_start(given, flags); int mode = va_arg(given, int); \\
  if (!real) real = dlsym(RTLD_NEXT, #NAME); return real(path, flags & ~(O_SYNC | O_DSYNC), mode); }
OPEN(open) OPEN(open64)
`

/** Imports and scrapes on two embedded services alternately, one of them without flushes. */
export const durability: Measurement = {
  name: 'durability',
  claim: 'flushing before acknowledging slows an import, and a scrape until its answer, by at most 5 %',
  async run({ scale, directory, note }) {
    const library = await noFlushLibrary(directory)
    const pages = await startPages()
    const environments = [{ UPSTREAM_URL: pages.url }, { UPSTREAM_URL: pages.url, LD_PRELOAD: library }]
    const services = await Promise.all(environments.map((environment) => startQuietService(directory, environment)))
    const clients = services.map(({ apiUrl }) => new Client(apiUrl))
    try {
      for (const service of services) await importTitlesAndNetwork(service, directory)
      const imports = services.map((): number[] => [])
      const scrapes = services.map((): number[] => [])
      const minutes = scaled(IMPORT_MINUTES, scale, 50)
      const file = join(directory, 'counts.csv.gz')
      for (let round = 0; round < ROUNDS; round += 1) {
        note(`round ${round + 1} of ${ROUNDS}`)
        const firstMs = minuteNow() - (round + 1) * minutes * MINUTE_MS
        await writeTitleCounts(file, 'csv.gz', { titleIds, firstMs, minutes })
        for (const [n, service] of services.entries()) {
          const begun = performance.now()
          await service.importFile('title-count', file)
          imports[n]?.push(performance.now() - begun)
        }
        for (let scrape = 0; scrape < scaled(SCRAPES, scale, 5); scrape += 1)
          for (const [n, service] of services.entries()) {
            const client = clients[n]
            if (client === undefined) continue
            const shown = FIRST_COUNT + (round * SCRAPES + scrape) * services.length + n
            scrapes[n]?.push(await scrapeUntilAnswered(service, client, pages, shown))
          }
      }
      return [
        resultOf(`import of ${figure(minutes * titleIds.length)} rows, median of ${ROUNDS}`, imports),
        resultOf('page sent → counts in the answer, median', scrapes)
      ]
    } finally {
      for (const client of clients) await client.close()
      for (const service of services) await service.remove()
      await pages.close()
    }
  }
}

function resultOf(what: string, [flushed = [], unflushed = []]: readonly (readonly number[])[]) {
  return {
    what,
    measured: quantile(flushed, 0.5),
    unit: 'ms',
    baseline: { what: 'without flushes', measured: quantile(unflushed, 0.5) },
    target: { bound: 'at most', value: COST_MAX, of: 'ratio' }
  } as const
}

async function noFlushLibrary(directory: string): Promise<string> {
  const [source, library] = [join(directory, 'no-flush.c'), join(directory, 'no-flush.so')]
  await writeFile(source, NO_FLUSH)
  try {
    execFileSync('cc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'], { stdio: 'ignore' })
  } catch {
    throw new CannotMeasure('there is no C compiler (Debian: apt-get install gcc)')
  }
  return library
}
