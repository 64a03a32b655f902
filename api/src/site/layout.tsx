import { renderToString } from 'preact-render-to-string'
import { Time } from './components/marks.js'
import { withQuery } from './components/text.js'
import { embedPath } from './embed-path.js'
import { SITE_NAME, type SiteFacts, type View } from './values/page.js'

const SECTIONS = ['Games', 'Records', 'Changes', 'Achievements', 'Compare'] as const

/** Notes above the content: parts that are old or missing. */
export type Notes = {
  /** The instant of the oldest part that could not be read again, milliseconds since 1970. */
  readonly lastMs?: number | undefined
  readonly failures?: readonly string[]
}

/** Returns a page as HTML. It depends on nothing but the arguments: language, zone, theme and ages are the script's. */
export function documentOf(view: View, site: SiteFacts, notes: Notes = {}): string {
  return `<!doctype html>\n${renderToString(<Document view={view} site={site} notes={notes} />)}\n`
}

type DocumentProps = { readonly view: View; readonly site: SiteFacts; readonly notes: Notes }

function Document({ view, site, notes }: DocumentProps) {
  const { isEmbed = false, theme } = view
  return (
    <html lang="en" {...(theme === undefined ? {} : { 'data-theme': theme })}>
      <Head view={view} site={site} />
      <body class={isEmbed ? 'embed' : undefined}>
        {isEmbed ? null : <Header current={view.section} />}
        <main id="main" tabindex={-1}>
          <Noted notes={notes} />
          {view.content}
        </main>
        {isEmbed ? null : <Footer version={site.version} />}
      </body>
    </html>
  )
}

function Head({ view, site }: Omit<DocumentProps, 'notes'>) {
  const { title, description, canonical, isEmbed = false, isUnlisted = isEmbed, feeds = [], islands = [] } = view
  const asset = (name: string) => `/site/${site.build}/${name}`
  const full = title === SITE_NAME ? title : `${title} · ${SITE_NAME}`
  const url = site.publicUrl + canonical
  const isShared = !isEmbed && embedPath(canonical) !== undefined
  const preview = {
    'og:type': 'website',
    'og:site_name': SITE_NAME,
    'og:title': full,
    ...(description === undefined ? {} : { 'og:description': description }),
    'og:url': url,
    'og:image': site.publicUrl + (view.picture ?? '/card.png'),
    'twitter:card': 'summary_large_image'
  }
  const modules = ['site', ...(view.hasChart ? ['chart'] : []), ...islands]
  return (
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>{full}</title>
      {description === undefined ? null : <meta name="description" content={description} />}
      {isUnlisted ? <meta name="robots" content="noindex" /> : null}
      <link rel="canonical" href={url} />
      {isEmbed
        ? null
        : Object.entries(preview).map(([property, content]) => (
            <meta key={property} property={property} content={content} />
          ))}
      {isShared ? (
        <link rel="alternate" type="application/json+oembed" href={withQuery('/oembed', { url })} title={full} />
      ) : null}
      <link rel="stylesheet" href={asset('site.css')} />
      <script src={asset('theme.js')} />
      {modules.map((name) => (
        <script key={name} type="module" src={asset(`${name}.js`)} />
      ))}
      <link rel="icon" href="/icon.svg" type="image/svg+xml" />
      <link rel="manifest" href="/manifest.webmanifest" />
      {feeds.map((feed) => (
        <link key={feed.href} rel="alternate" type="application/atom+xml" title={feed.title} href={feed.href} />
      ))}
    </head>
  )
}

function Header({ current }: { current: string | undefined }) {
  return (
    <header class="top">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <a class="brand" href="/">
        <img src="/icon.svg" alt="" width="24" height="24" />
        {SITE_NAME}
      </a>
      <nav aria-label="Site">
        {SECTIONS.map((text) => {
          const href = `/${text.toLowerCase()}`
          return (
            <a key={href} href={href} aria-current={href === current ? 'page' : undefined}>
              {text}
            </a>
          )
        })}
      </nav>
      <search class="search">
        <form action="/search">
          <input
            type="search"
            name="q"
            maxlength={100}
            placeholder="Games, players, times…"
            aria-label="Search games, boards, players and times"
            list="suggested"
            autocomplete="off"
          />
          <datalist id="suggested" />
        </form>
      </search>
      <button type="button" id="theme" class="scripted" aria-label="Dark or light colours">
        ☾
      </button>
      <a href="/me" id="me" rel="nofollow">
        Sign in
      </a>
    </header>
  )
}

function Footer({ version }: { version: string }) {
  return (
    <footer>
      <nav aria-label="More">
        <a href="/status">Status</a>
        <a href="/data">Data</a>
        <a href="/docs">API</a>
        <a href="/api/records/recent.atom">Atom</a>
      </nav>
      <p>
        <span id="zone">Times are UTC.</span> Gaps mean no data. Version {version}.
      </p>
    </footer>
  )
}

function Noted({ notes: { lastMs, failures = [] } }: { notes: Notes }) {
  return (
    <>
      {lastMs === undefined ? null : (
        <p class="note stale" role="status">
          Newer numbers cannot be read at the moment. Last update: <Time at={lastMs} />
        </p>
      )}
      {failures.map((sentence) => (
        <p key={sentence} class="note stale" role="status">
          A part of this page is missing. {sentence}
        </p>
      ))}
    </>
  )
}
