/**
 * The form in which names are compared "without case": NFKC, lower case, NFKC again (lower-casing
 * can leave a string that NFKC would still change). Stored next to the name and never recomputed by
 * an engine, whose folding rules differ.
 */
export function nameKey(name: string): string {
  return name.normalize('NFKC').toLowerCase().normalize('NFKC')
}
