import type { SiteFacts } from './values/page.js'

/**
 * Headers of HTML. A page loads only files of this service, runs no inline script or style, and cannot be framed; an
 * embed can, by any page. Browsers connect to the auth service only to sign in.
 */
export function pageHeaders(
  { authUrl }: Pick<SiteFacts, 'authUrl'>,
  isEmbed = false
): Readonly<Record<string, string>> {
  const auth = authUrl === undefined ? '' : ` ${new URL(authUrl).origin}`
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; manifest-src 'self'; " +
      `connect-src 'self'${auth}; base-uri 'none'; form-action 'self'; object-src 'none'; ` +
      `frame-ancestors ${isEmbed ? '*' : "'none'"}`,
    'Referrer-Policy': 'strict-origin-when-cross-origin'
  }
}

/** Headers of a drawing: other pages may show it, and it runs nothing. */
export function pictureHeaders(extension: string): Readonly<Record<string, string>> {
  return {
    'Content-Type': extension === 'png' ? 'image/png' : 'image/svg+xml',
    'Content-Security-Policy': "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    'Cache-Control': 'public, max-age=60'
  }
}
