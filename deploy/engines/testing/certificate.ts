import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** PEM files of a server on 127.0.0.1. Its certificate is its own authority. */
export type Certificate = { readonly keyFile: string; readonly certificateFile: string }

/** Creates a key and a self-signed certificate. */
export const selfSigned = (folder: string): Certificate => {
  const [keyFile, certificateFile] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile]
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1']
  execFileSync('openssl', ['req', '-x509', ...key, '-out', certificateFile, ...subject], { stdio: 'pipe' })
  return { keyFile, certificateFile }
}
