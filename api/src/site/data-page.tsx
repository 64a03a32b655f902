import { bytesText } from '@gamenet/schemas'
import type { FastifyInstance } from 'fastify'
import type { DatasetList } from '../datasets/manifest.js'
import { Card } from './components/marks.js'
import { Table } from './components/table.js'
import { documentOf } from './layout.js'
import { pageHeaders } from './page-headers.js'
import type { SiteFacts } from './values/page.js'

/** Adds `/data`: the published files by dataset and month, from `/api/data`, which also starts to make them. */
export function addDataPage(app: FastifyInstance, site: SiteFacts, publicUrl: string): void {
  app.get('/data', async (_request, reply) => {
    const list = await app.inject('/api/data')
    const { datasets = [], excluded = '' } = list.json<Partial<DatasetList>>()
    const html = documentOf(
      {
        title: 'Data',
        description: 'All counts, boards and records as Parquet files, one a month, with sizes and hashes.',
        canonical: '/data',
        section: '/data',
        content: (
          <>
            <h1>Data</h1>
            <p>
              One Parquet file a dataset and month; the list is also <a href="/api/data">JSON</a>. {excluded}
            </p>
            {datasets.map((dataset) => (
              <DatasetCard key={dataset.name} dataset={dataset} publicUrl={publicUrl} />
            ))}
          </>
        )
      },
      site
    )
    return reply.headers({ ...pageHeaders(site), 'Cache-Control': 'no-cache' }).send(html)
  })
}

function DatasetCard({
  dataset: { name, meaning, columns, files },
  publicUrl
}: {
  dataset: DatasetList['datasets'][number]
  publicUrl: string
}) {
  const newest = files.find(({ period }) => period !== 'newest') ?? files[0]
  const url = newest === undefined ? undefined : `${publicUrl}${newest.url}`
  return (
    <Card title={name}>
      <p>{meaning}</p>
      {url === undefined ? <p class="quiet">No file yet.</p> : <Samples url={url} />}
      <details>
        <summary>
          {files.length} files, {columns.length} columns
        </summary>
        <Table
          label={`Files of ${name}`}
          rows={files}
          columns={[
            ['Month', (file) => <a href={file.url}>{file.period}</a>],
            ['#Size', ({ newest: kept }) => (kept?.bytes === undefined ? '' : bytesText(kept.bytes))],
            ['SHA-256', ({ newest: kept }) => <code>{kept?.sha256?.slice(0, 16)}</code>],
            ['State', ({ isClosed }) => (isClosed ? 'closed' : 'unfinished')]
          ]}
        />
        <Table
          label={`Columns of ${name}`}
          rows={columns}
          columns={[
            ['Column', (column) => <code>{column.name}</code>],
            ['Type', (column) => column.type],
            ['Description', (column) => column.meaning]
          ]}
        />
      </details>
    </Card>
  )
}

function Samples({ url }: { url: string }) {
  return (
    <pre tabindex={0}>
      <code>{`pandas  pd.read_parquet('${url}')
DuckDB  duckdb -c "SELECT * FROM '${url}' LIMIT 5"
R       arrow::read_parquet('${url}')`}</code>
    </pre>
  )
}
