import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { openChdb } from '@gamenet/engines'
import { listening } from '@gamenet/engines/testing'
import { pause } from '@gamenet/schemas'
import { type Test, test } from 'tap'
import { sameList } from './service/ask.js'
import { closedFiles, datasetsOf } from './service/dataset-proofs.js'
import { gamenetJson, openGamenet, plainWrites, ROOT, spawnGamenet } from './service/gamenet.js'
import { readPage, samplesOf } from './service/page-samples.js'
import { recordedFile } from './service/recorded.js'

/** From PyPI. */
const PACKAGES = [
  ...['duckdb==2.0.1', 'polars==2.1.0', 'pandas==3.1.1', 'pyarrow==26.0.1', 'clickhouse-connect==1.12.0'],
  ...['fsspec', 'aiohttp', 'matplotlib==3.11.2', 'nbclient', 'ipykernel==7.4.0']
]
/** From npm. */
const NODE_PACKAGES = ['hyparquet@1.33.0', 'hyparquet-compressors@1.1.2']
const PYTHON = '/usr/bin/python3'
/** The drivers of DBeaver and Metabase, from Maven Central, and of Grafana, from Go's module proxy. */
const JAVA_DRIVER = ['com.clickhouse:clickhouse-jdbc:0.9.4:jar:all', 'org.slf4j:slf4j-api:2.0.17']
const GO_DRIVER = 'github.com/ClickHouse/clickhouse-go/v2@v2.51.0'
const DRIVERS = new URL('deploy/test/drivers/', ROOT)
/** Debian's package `r-base-core`. */
const RSCRIPT = '/usr/bin/Rscript'
const SQL_PASSWORD = 'password-of-analysts-in-tests'
/** A snapshot of a port is as old at most. */
const SNAPSHOT_SECONDS = 600
const START_MS = Date.UTC(2025, 0, 1)
const MINUTES = 90 * 1440
const STEP_MINUTES = 5
/** Titles of a network, and the days of 2024. A title has a count every ten minutes. */
const RANGED_TITLES = 1000
const RANGED_DAYS = 366
const TITLES = ['4d530064', '5553001c', '4541000d']
const run = promisify(execFile)
/** The threads of fsspec and PyArrow at times abort an interpreter that ends by itself, after all is read and printed. */
const EXIT = '\nimport os, sys\nsys.stdout.flush()\nos._exit(0)'

const count = (title: number, minute: number) => Math.round(20 * (title + 1) * (1 + Math.sin(minute / 700 + title)))
const samples = TITLES.flatMap((id, title) =>
  Array.from({ length: MINUTES / STEP_MINUTES }, (_, n) => ({
    id,
    ms: START_MS + n * STEP_MINUTES * 60_000,
    online: count(title, n * STEP_MINUTES)
  }))
)

test('the examples of docs/analysis.md run as printed', async (t) => {
  const python = await installed(t)
  const directory = t.testdir()
  const environment = {
    DATA_DIR: join(directory, 'data'),
    UPSTREAM_URL: 'http://127.0.0.1:9',
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0',
    SQL_PASSWORD,
    ...(await plainWrites(t))
  }
  const service = await openGamenet(t, environment)
  const importRows = async (topic: string, header: string, rows: readonly string[]) => {
    const file = join(directory, `${topic}.csv`)
    await writeFile(file, [header, ...rows].join('\n'))
    await gamenetJson(environment, ['import', topic, file])
  }
  const row = ({ id, ms, online }: (typeof samples)[number]) => `${id},${new Date(ms).toISOString()},${online}`
  await importRows('title-count', 'titleId,observedAt,online', samples.map(row))
  await importRows(
    'title',
    'titleId,name,observedAt',
    TITLES.map((id) => `${id},Title ${id},2025-01-01T00:00:00Z`)
  )

  const server = spawnGamenet(environment, ['sql', '--serve', '--port', '0', '--json'])
  t.teardown(() => server.kill('SIGTERM'))
  const [line] = await once(server.stdout ?? server, 'data')
  const env = {
    PATH: process.env.PATH ?? '',
    GAMENET_URL: service.apiUrl,
    SQL_PORT: new URL(JSON.parse(String(line)).url).port,
    SQL_PASSWORD
  }
  const execute = async (code: string) => (await run(python, ['-c', code + EXIT], { env, maxBuffer: 2 ** 26 })).stdout
  const fences = samplesOf('docs/analysis.md', await readPage('docs/analysis.md'))
  const inLanguage = (wanted: string) => fences.filter(({ language }) => language === wanted).map(({ text }) => text)
  const examples = inLanguage('python')
  t.equal(examples.length, 4, 'DuckDB, Polars, pandas, SQL')
  for (const code of examples) {
    const output = await execute(code)
    t.match(output, /4541000d|Title 4541000d/, code)
    t.comment(`${code}\n${output}`)
  }

  await t.test('the examples of docs/exports.md run as printed', async (t) => {
    for (const { language, text } of samplesOf('docs/exports.md', await readPage('docs/exports.md'))) {
      if (language === 'sh') continue
      const code = text.replaceAll('http://127.0.0.1:8080', service.apiUrl)
      const output = await execute(
        language === 'python'
          ? `${code}\nprint(counts)`
          : `${HTTP_FILES}
import duckdb
duckdb.register_filesystem(Files())
print(duckdb.sql(${JSON.stringify(code)}))`
      )
      t.match(output, /\w/, text)
    }
  })

  await t.test('the statement for Grafana runs through clickhouse-connect', async (t) => {
    const [statement = ''] = inLanguage('sql')
    const output = await execute(`${clientOf(examples.at(-1) ?? '')}
print(len(client.query(${JSON.stringify(statement)}).result_rows))`)
    t.equal(Number(output), 31 * 24 * TITLES.length)
  })

  await t.test('the drivers of DBeaver, Metabase and Grafana connect, list columns and read rows', async (t) => {
    const [statement = ''] = inLanguage('sql')
    const columns = ['title_id', 'observed_at', 'online', 'sessions', 'lobby_players']
    const folder = join(directory, 'drivers')
    await mkdir(folder)
    for (const artifact of JAVA_DRIVER) {
      const args = ['-q', 'dependency:copy', `-Dartifact=${artifact}`, `-DoutputDirectory=${folder}`]
      await run('mvn', args, { cwd: folder })
    }
    const java = ['-cp', join(folder, '*'), fileURLToPath(new URL('SqlClient.java', DRIVERS))]
    const { stdout } = await run('java', java, { env })
    t.same(stdout.trim().split('\n'), ['ClickHouse', 'VIEW', ...columns, String((31 * 1440) / STEP_MINUTES)])

    await copyFile(new URL('sqlclient.go', DRIVERS), join(folder, 'main.go'))
    const go = async (...args: string[]) =>
      (await run('go', args, { cwd: folder, env: { ...process.env, ...env } })).stdout
    await go('mod', 'init', 'sqlclient')
    await go('get', GO_DRIVER)
    const lines = (await go('run', '.', statement)).trim().split('\n')
    t.equal(lines[0], 'gamenet_analyst')
    t.ok(lines.includes('title_count'))
    t.same(lines.slice(-31 * 24 * TITLES.length - columns.length, -31 * 24 * TITLES.length), columns)
  })

  const expected = samples.filter(({ ms }) => ms >= Date.UTC(2025, 2, 1)).map(({ id, ms, online }) => [id, ms, online])
  expected.sort(([a], [b]) => String(a).localeCompare(String(b)))

  await t.test('the notebook draws its plots', async (t) => {
    const output = await execute(`import nbformat, nbclient
notebook = nbformat.read(${JSON.stringify(fileURLToPath(new URL('docs/analysis.ipynb', ROOT)))}, 4)
assert not any(cell.get('outputs') for cell in notebook.cells)
nbclient.NotebookClient(notebook, timeout=300).execute()
print(sum('image/png' in output.get('data', {}) for cell in notebook.cells for output in cell.get('outputs', [])))`)
    t.equal(Number(output), 2)
  })

  await t.test('the example for Node runs as printed, and reads every row of the source', async (t) => {
    const folder = join(directory, 'node')
    await mkdir(folder)
    await run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', ...NODE_PACKAGES])
    const [code = ''] = inLanguage('js')
    const file = join(folder, 'example.mjs')
    await writeFile(
      file,
      `${code}\nconsole.log(JSON.stringify(rows.map(({ title_id, observed_at, online }) => [title_id, Number(observed_at), online])))`
    )
    const [shown, rows = ''] = (await run(process.execPath, [file], { env, maxBuffer: 2 ** 26 })).stdout.split(
      /\n(?=\[\[)/
    )
    t.match(shown, new RegExp(`^${expected.length} `))
    t.same(JSON.parse(rows), expected)
  })

  await t.test('the example for R runs as printed', async (t) => {
    if (!existsSync(RSCRIPT)) throw new Error('NO R: its example cannot be run; apt-get install r-base-core')
    const [code = ''] = inLanguage('r')
    const { stdout } = await run(RSCRIPT, ['-e', `${code}\ncat(nrow(counts), sum(counts[[2]]))`], {
      env,
      cwd: directory
    })
    const own = samples.filter(({ id }) => id === TITLES[0])
    t.equal(stdout, `${own.length} ${own.reduce((sum, { online }) => sum + online, 0)}`)
    t.ok(existsSync(join(directory, 'Rplots.pdf')), 'a plot')
  })

  /** Rows of files as every Python reader returns them: text, instant in ms, number. */
  const readInPython = async (
    t: Test,
    urls: readonly string[],
    columns: readonly [string, string],
    rows: unknown[]
  ) => {
    for (const [name, { imports, read }] of Object.entries(pythonReaders(...columns))) {
      const output = await execute(`import json
${imports}
rows = []
for url in ${JSON.stringify(urls)}:
    ${read.replaceAll('\n', '\n    ')}
print(json.dumps([[a, int(b), int(c)] for a, b, c in rows]))`)
      sameList(t, JSON.parse(output), rows, name)
    }
  }

  await t.test('DuckDB, Polars, pandas and PyArrow read every row of the source', (t) =>
    readInPython(t, [`${service.apiUrl}/api/data/title-count/2025-03.parquet`], ['title_id', 'online'], expected)
  )

  await t.test('every reader gets nine recorded years completely', async (t) => {
    const recorded = await recordedFile(t, 'online-hourly-2017-2026.csv.gz')
    const columns = 'observedAt=Timestamp,online=Peak Player Count'
    await gamenetJson(environment, ['import', 'network-count', recorded, '--columns', columns])
    const [, ...lines] = gunzipSync(await readFile(recorded))
      .toString()
      .trimEnd()
      .split(/\r?\n/)
    const rows = lines.flatMap((line) => {
      const [time = '', online = ''] = line.split(',')
      return online === '' ? [] : [['online', Date.parse(`${time.replace(' ', 'T')}Z`), Number(online)]]
    })
    const dataset = (await datasetsOf(service.apiUrl)).find(({ name }) => name === 'network-count')
    const urls = (dataset?.files ?? []).map(({ url }) => service.apiUrl + url).reverse()
    await readInPython(t, urls, ['metric', 'value'], rows)
    const file = join(directory, 'node', 'recorded.mjs')
    await writeFile(file, nodeReader(urls))
    const { stdout } = await run(process.execPath, [file], { env, maxBuffer: 2 ** 26 })
    sameList(t, JSON.parse(stdout), rows, 'hyparquet')
    t.comment(`${rows.length} rows in ${urls.length} files`)
  })

  await t.test('the port shows a newer snapshot before the first is 10 minutes old', async (t) => {
    const rows = async () =>
      JSON.parse(
        await execute(`import os, urllib.request, base64
query = 'SELECT+toUnixTimestamp(taken_at),(SELECT+count()+FROM+network_count)+FROM+snapshot+FORMAT+JSONCompactEachRow'
request = urllib.request.Request(f"http://127.0.0.1:{os.environ['SQL_PORT']}/?query={query}")
request.add_header('Authorization', 'Basic ' + base64.b64encode(b'gamenet_analyst:' + os.environb[b'SQL_PASSWORD']).decode())
print(urllib.request.urlopen(request).read().decode())`)
      )
    const [first] = await rows()
    await pause(first * 1000 + SNAPSHOT_SECONDS * 1000 - Date.now())
    const [second, counts] = await rows()
    t.ok(second > first, `${first}, ${second}`)
    t.ok(counts > 0, 'it has what was imported since the first')
  })
})

/**
 * DuckDB reads HTTP by its extension httpfs, which is in no package registry; here `fsspec` does. Its existence check
 * begins to fetch the complete file.
 */
const HTTP_FILES = `import datetime
from fsspec.implementations.http import HTTPFileSystem
class Files(HTTPFileSystem):
    async def _exists(self, path, **options): return True
    def modified(self, path): return datetime.datetime(2025, 1, 1)`

/** Polars begins with this part of each file, once or twice, large or small: a twentieth of the files of the test. */
const POLARS_TAIL = 'bytes=-262144'

test('readers of a year of one of 1,000 titles fetch at most a twentieth of the bytes', async (t) => {
  const python = await installed(t)
  const environment = {
    DATA_DIR: join(t.testdir(), 'data'),
    UPSTREAM_URL: 'http://127.0.0.1:9',
    SCRAPE_NETWORK_SECONDS: '0',
    SCRAPE_GAMES_SECONDS: '0',
    ...(await plainWrites(t))
  }
  // Tables without the file of their log are refused.
  await gamenetJson(environment, ['migrate'])
  await fillYear(environment.DATA_DIR)
  const { apiUrl } = await openGamenet(t, environment)
  await closedFiles(apiUrl)
  const files = (await datasetsOf(apiUrl)).find(({ name }) => name === 'title-count')?.files ?? []
  t.equal(files.length, 12)
  const whole = files.reduce((sum, { newest }) => sum + (newest?.bytes ?? 0), 0)
  let sent = 0
  let tails = 0
  const proxy = await listening(t, ({ url, method = 'GET', headers }, answer) => {
    get(apiUrl + url, { method, headers }, (from) => {
      answer.writeHead(from.statusCode ?? 502, from.headers)
      from.on('data', (chunk) => {
        if (headers.range === POLARS_TAIL) tails += chunk.length
        else sent += chunk.length
      })
      from.pipe(answer)
    })
  })
  const urls = files.map(({ url }) => proxy + url)
  for (const [name, code] of Object.entries(rangedReaders(urls))) {
    for (const titleId of ['00000000', '00000500', '00000999']) {
      sent = 0
      tails = 0
      const { stdout } = await run(python, ['-c', code + EXIT, titleId])
      // DuckDB shows its progress on a busy machine.
      t.equal(Number(stdout.trim().split(/\s/).at(-1)), RANGED_DAYS * 144, `${name}, ${titleId}: rows`)
      const share = `${sent} of ${whole} bytes, ${((100 * sent) / whole).toFixed(2)} %, and ${tails} of tails`
      t.ok(sent > 0 && sent <= whole / 20, `${name}, ${titleId}: ${share}`)
      t.comment(`${name}, ${titleId}: ${share}`)
    }
  }
})

/** Generates the rows in the engine: an import of 52 million counts would take a quarter of an hour. */
async function fillYear(dataDirectory: string): Promise<void> {
  const tables = await openChdb({ path: join(dataDirectory, 'tables') })
  try {
    await tables.rebuild.execute(
      `INSERT INTO title_count__0 (title_id, ts, online, position)
       SELECT leftPad(toString(number % ${RANGED_TITLES}) AS title, 8, '0'),
         toDateTime64('2024-01-01 00:00:00', 3, 'UTC') + (intDiv(number, ${RANGED_TITLES}) AS n) * 600,
         100 + 80 * sin(n / 23) + cityHash64(number) % 16, 1
       FROM numbers(${RANGED_TITLES * RANGED_DAYS * 144})`
    )
  } finally {
    await tables.close()
  }
}

/** Programs that print the number of rows of a title, their argument. */
function rangedReaders(urls: readonly string[]): Record<string, string> {
  const files = `${HTTP_FILES}
import sys
files = Files(cache_type='none')
urls, title_id = ${JSON.stringify(urls)}, sys.argv[1]`
  return {
    PyArrow: `${files}
import pyarrow.parquet as pq
columns, filters = ['observed_at', 'online'], [('title_id', '==', title_id)]
print(sum(len(pq.read_table(files.open(url), columns=columns, filters=filters)) for url in urls))`,
    Polars: `import sys
import polars as pl
counts = pl.scan_parquet(${JSON.stringify(urls)}).filter(pl.col('title_id') == sys.argv[1])
print(counts.select('observed_at', 'online').collect().height)`,
    DuckDB: `${files}
import duckdb
duckdb.register_filesystem(files)
counts = duckdb.execute('SELECT observed_at, online FROM read_parquet(?) WHERE title_id = ?', [urls, title_id])
print(len(counts.fetchall()))`
  }
}

/** Each adds the rows of the file at `url` to `rows`. */
function pythonReaders(key: string, value: string): Record<string, { imports: string; read: string }> {
  return {
    duckdb: {
      imports: 'import duckdb, fsspec\nimport pyarrow.dataset as ds',
      read: `counts = ds.dataset([url], format='parquet', filesystem=fsspec.filesystem('http'))
rows += duckdb.sql('SELECT ${key}, epoch_ms(observed_at), ${value} FROM counts ORDER BY ALL').fetchall()`
    },
    polars: {
      imports: 'import polars as pl',
      read: `d = pl.read_parquet(url)\nrows += zip(d['${key}'], d['observed_at'].dt.epoch('ms'), d['${value}'])`
    },
    pandas: {
      imports: 'import pandas as pd',
      read: `d = pd.read_parquet(url)
rows += zip(d['${key}'], d.observed_at.astype('datetime64[ms, UTC]').astype('int64'), d['${value}'])`
    },
    pyarrow: {
      imports: 'import io, urllib.request\nimport pyarrow.parquet as pq',
      read: `d = pq.read_table(io.BytesIO(urllib.request.urlopen(url).read()))
rows += zip(d['${key}'].to_pylist(), d['observed_at'].cast('int64').to_pylist(), d['${value}'].to_pylist())`
    }
  }
}

const nodeReader = (urls: readonly string[]) => `import { asyncBufferFromUrl, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
const all = []
for (const url of ${JSON.stringify(urls)}) {
  const rows = await parquetReadObjects({ file: await asyncBufferFromUrl({ url }), compressors })
  for (const { metric, observed_at, value } of rows) all.push([metric, Number(observed_at), Number(value)])
}
console.log(JSON.stringify(all))`

const clientOf = (code: string) => code.slice(0, code.indexOf('result ='))

async function installed(t: Test): Promise<string> {
  if (!existsSync(PYTHON)) throw new Error(`${PYTHON} is missing; install python3 and python3-venv`)
  const venv = join(process.env.CAMPAIGN_DIRECTORY ?? t.testdir(), 'venv')
  const python = join(venv, 'bin', 'python')
  if (!existsSync(python)) {
    await mkdir(join(venv, '..'), { recursive: true })
    await run(PYTHON, ['-m', 'venv', venv])
    await run(python, ['-m', 'pip', 'install', '--quiet', ...PACKAGES])
  }
  return python
}
