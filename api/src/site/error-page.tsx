import type { Refusal } from '@gamenet/schemas'
import { SearchForm } from './components/form.js'
import { documentOf } from './layout.js'
import type { SiteFacts } from './values/page.js'

const HEADLINES: Readonly<Record<number, string>> = {
  400: 'This address has a mistake',
  404: 'Nothing is here',
  405: 'This address only shows pages',
  503: 'This part of the service is away'
}

/** Returns the page of a refusal: what is wrong, and where to go from here. */
export function errorDocument({ status, message, code }: Refusal, url: string, site: SiteFacts): string {
  const headline = HEADLINES[status] ?? (status >= 500 ? 'The service failed' : 'This request was refused')
  return documentOf(
    {
      title: headline,
      canonical: '/',
      isUnlisted: true,
      content: (
        <section class="card error">
          <h1>{headline}</h1>
          <p>{message}</p>
          {status === 404 ? <SearchForm words={wordsOf(url)} /> : null}
          {status === 503 ? (
            <p>
              Pages that were read lately still work: <a href="/">home</a>, <a href="/games">games</a>,{' '}
              <a href="/status">status</a>. Try this one again in a minute.
            </p>
          ) : null}
          <p class="quiet">
            Status {status}, code <a href={`/docs/errors#${code}`}>{code}</a>
          </p>
        </section>
      )
    },
    site
  )
}

/** Returns the words of a path, without what pages have in common, ids, and the names of files. */
function wordsOf(url: string): string {
  const [path = ''] = url.split('?')
  const segments = path.replace(/\/boards\/\d+/, '').split('/')
  try {
    return decodeURIComponent(segments.filter((segment) => !NO_WORDS.test(segment)).join(' '))
      .replaceAll('-', ' ')
      .slice(0, 100)
  } catch {
    return ''
  }
}

const NO_WORDS =
  /^(?:|games|boards|players|users|achievements|compare|records|changes|embed|[0-9a-f]{8}|\w+\.(?:svg|png))$/
