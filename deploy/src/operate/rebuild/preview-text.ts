import { counted, table } from '../../terminal/terminal.js'
import type { Preview } from './operation.js'

/** Answers, and subjects, that the text lists. */
const LISTED_MAX = 50
const KINDS = ['records', 'ranks', 'peaks', 'unlocks', 'others'] as const

export function linesOfPreview({
  answers,
  compared,
  isComplete,
  subjects,
  subjectCount,
  ...preview
}: Preview): string[] {
  const { id, projection } = preview.rebuild
  if (subjectCount === 0) return [`No row differs, so the swap of rebuild ${id} of ${projection} changes no answer.`]
  const more = answers.length - LISTED_MAX
  return [
    `The swap of rebuild ${id} of ${projection} changes ${counted(answers.length, 'answer')} of the ${compared} that ` +
      'read rows that differ.',
    ...(isComplete ? [] : ['More answers may change: this preview is at its limit. Preview a key by --key.']),
    '',
    ...table([
      [...KINDS.map((kind) => kind.toUpperCase()), 'ANSWER'],
      ...answers.slice(0, LISTED_MAX).map(({ url, effect }) => [...KINDS.map((kind) => `${effect[kind]}`), url])
    ]),
    ...(more > 0 ? ['', `and ${more} more, which --json and --csv print`] : []),
    '',
    ...table([
      ['TABLE', 'ROWS', 'OF'],
      ...subjects.slice(0, LISTED_MAX).map((each) => [each.table, `${each.rows}`, textOf(each.key)])
    ]),
    ...(subjectCount > LISTED_MAX ? ['', `and of ${subjectCount - LISTED_MAX} more`] : [])
  ]
}

function textOf(key: Readonly<Record<string, unknown>>): string {
  return Object.entries(key)
    .map(([name, value]) => `${name} ${JSON.stringify(value)}`)
    .join(', ')
}

/** Returns the lines of a CSV of the answers. */
export function csvOfPreview({ answers }: Preview): string[] {
  return [
    ['endpoint', 'key', 'url', ...KINDS].join(','),
    ...answers.map(({ endpoint, key, url, effect }) =>
      [endpoint, cell(key), cell(url), ...KINDS.map((kind) => effect[kind])].join(',')
    )
  ]
}

/** Quotes a text; a spreadsheet computes no formula that begins with an apostrophe. Keys are names of strangers. */
function cell(text: string): string {
  const shown = /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20']/.test(text) ? `'${text}` : text
  return `"${shown.replaceAll('"', '""')}"`
}
