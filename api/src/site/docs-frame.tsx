import type { Frame } from '../pages/reference.js'
import { documentOf } from './layout.js'
import { pageHeaders } from './page-headers.js'
import type { SiteFacts } from './values/page.js'

/** Returns the frame of the pages below `/docs`, whose HTML is made of the OpenAPI document and of guides. */
export function docsFrame(site: SiteFacts): Frame {
  return {
    headers: pageHeaders(site),
    documentOf: ({ title, path, html }) =>
      documentOf(
        {
          title,
          canonical: path,
          section: '/docs',
          content: <div class="docs" dangerouslySetInnerHTML={{ __html: html }} />
        },
        site
      )
  }
}
