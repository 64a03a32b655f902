import { z } from 'zod'

const TYPES: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object'
}
const FORMATS: Readonly<Record<string, string>> = {
  date: 'a date as YYYY-MM-DD',
  datetime: 'an instant as YYYY-MM-DDTHH:MM:SSZ',
  url: 'an address that begins with http:// or https://'
}
const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' items' }

/*
 * The sentences for values that miss their schema say what was expected; their readers add the field and the value.
 * Loading this file sets them.
 */
z.config({ customError: textOf })

/** Returns undefined for a fault with a text of its own, and for those that no reader shows. */
function textOf(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'too_small':
      return `expected at least ${issue.minimum}${UNITS[issue.origin] ?? ''}`
    case 'too_big':
      return `expected at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`
    case 'invalid_type':
      return `expected ${TYPES[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return `expected ${issue.values.join(', ')}`
    case 'invalid_format':
      return `expected ${FORMATS[issue.format] ?? `a text of the form ${issue.pattern ?? issue.format}`}`
    case 'unrecognized_keys':
      return `expected no ${issue.keys.join(', ')}`
    default:
      return undefined
  }
}
