import { visibleText } from './visible-text.js'

/**
 * The form in which names are compared "without case": NFKC, lower case, NFKC again (lower-casing
 * can leave a string that NFKC would still change). Stored next to the name and never recomputed by
 * an engine, whose folding rules differ.
 */
export const nameKey = (name: string): string => name.normalize('NFKC').toLowerCase().normalize('NFKC')

/**
 * Returns whether only other cases of a name have its key, so that it can say who somebody is. `ｆｉｓｈ` has the key of
 * `fish`, and `İx` that of `i̇x`, whose first letter is two characters.
 */
export function hasOwnKey(name: string): boolean {
  const lower = name.toLowerCase()
  return isNormal(name) && isNormal(lower) && [...lower].length === [...name].length
}

const isNormal = (text: string): boolean => text === text.normalize('NFKC')

/** The key by which a request finds a title by name: pages and people differ in blanks. */
export const titleKey = (name: string): string => nameKey(visibleText(name))
