import { createHash, timingSafeEqual } from 'node:crypto'

/** Whether what was given is the secret, found out in a time that tells nothing about either. */
export function isSameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(secret))
}
