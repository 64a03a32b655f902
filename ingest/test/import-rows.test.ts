import { deepStrictEqual as deepEqual } from 'node:assert'
import { runs } from '@gamenet/engines/testing'
import fc from 'fast-check'
import { test } from 'tap'
import { cellsOf, csvCutter } from '../src/import/csv.js'
import { arrayCutter, ndjsonCutter, objectsOf } from '../src/import/json.js'
import { type Cutter, type Row, rowsOf } from '../src/import/rows.js'

async function* blocksOf(blocks: readonly string[]): AsyncGenerator<string> {
  yield* blocks
}

async function rowsFrom(blocks: readonly string[], cutter: Cutter): Promise<Row[]> {
  const rows: Row[] = []
  for await (const some of rowsOf(blocksOf(blocks), cutter)) rows.push(...some)
  return rows
}

async function csv(text: string) {
  return [...cellsOf(await rowsFrom([text], csvCutter()))]
}

async function array(text: string) {
  return objectsOf(await rowsFrom([text], arrayCutter()))
}

test('a row of CSV has the line on which it begins, also after line ends inside quotes', async (t) => {
  t.same(await csv('a,b\r\n"x\n\ny",1\r\n\r\nc,"d ""e"", f"\n\ng,'), [
    { line: 1, cells: ['a', 'b'] },
    { line: 2, cells: ['x\n\ny', '1'] },
    { line: 6, cells: ['c', 'd "e", f'] },
    { line: 8, cells: ['g', ''] }
  ])
})

test('a broken quote costs its own line and no other', async (t) => {
  for (const broken of ['1,"x', '1,x"y', '1,"x"y', '"', '1,""x"', 'a,"b" ,"c"']) {
    const rows = await csv(`a,b\n2,"y"\n${broken}\n3,z\n4,"u\nv"\n`)
    t.same(
      rows.filter((row) => 'cells' in row),
      [
        { line: 1, cells: ['a', 'b'] },
        { line: 2, cells: ['2', 'y'] },
        { line: 4, cells: ['3', 'z'] },
        { line: 5, cells: ['4', 'u\nv'] }
      ],
      broken
    )
    t.match(
      rows.find((row) => 'fault' in row),
      { line: 3, fault: /valid CSV: .*quote/i },
      broken
    )
  }
})

test('of a file that ends inside a quote, the fault names the line of the quote and says that nothing closes it', async (t) => {
  t.same(await csv('a,b\n1,"x'), [
    { line: 1, cells: ['a', 'b'] },
    { line: 2, fault: 'the row is not valid CSV: a quote begins there and nothing closes it' }
  ])
  t.match((await csv('1,"y ""z""\nw,2\n')).at(0), { line: 1, fault: /nothing closes it/ })
  t.match((await csv('1,x"y\n')).at(0), { line: 1, fault: /not allowed there/ })
})

test('among thousands of quoted rows in one block each broken one is found by its line', async (t) => {
  const lines = Array.from({ length: 5000 }, (_, n) => (n % 997 === 13 ? `"${n}"x,"broken"` : `"${n}","a ""b"" c"`))
  const rows = await csv(lines.join('\n'))
  t.equal(rows.length, lines.length)
  deepEqual(
    rows.flatMap((row) => ('fault' in row ? [row.line] : [])),
    lines.flatMap((_, n) => (n % 997 === 13 ? [n + 1] : []))
  )
  deepEqual(rows[4999], { line: 5000, cells: ['4999', 'a "b" c'] })
})

test('every row of a file with nothing but broken quotes is a separate fault', async (t) => {
  const rows = await csv('a"b,1\n'.repeat(40_000))
  t.equal(rows.length, 40_000)
  t.ok(rows.every((row) => 'fault' in row))
  t.match(rows.at(-1), { line: 40_000 })
})

test('an unclosed quote is a fault after 65,536 characters, and the following rows are read', async (t) => {
  const good = Array.from({ length: 20_000 }, (_, n) => `${n},good`)
  const blocks = [`0,"never\n`, ...good.map((row) => `${row}\n`)]
  const rows = [...cellsOf(await rowsFrom(blocks, csvCutter()))]
  t.equal(rows.length, good.length + 1)
  t.match(rows[0], { line: 1, fault: /valid CSV/ })
  t.same(rows.at(-1), { line: 20_001, cells: ['19999', 'good'] })
})

test('a line that is too long is one fault, is never in memory, and the next line is read', async (t) => {
  const huge = Array.from({ length: 40 }, () => 'x'.repeat(60_000))
  for (const cutter of [csvCutter, ndjsonCutter]) {
    const rows = await rowsFrom(['a\n', ...huge, '\nb\n', `${'y'.repeat(2_000_000)}\nc`], cutter())
    t.match(rows, [
      { line: 1, text: 'a' },
      { line: 2, fault: /longer than/ },
      { line: 3, text: 'b' },
      { line: 4, fault: /longer than/ },
      { line: 5, text: 'c' }
    ])
    t.equal(rows.length, 5)
  }
})

test('elements of an array are found in any layout, with their lines', async (t) => {
  const expected = [{ a: '}],{"' }, { a: { b: [1, '\\'] } }, {}]
  for (const layout of [
    JSON.stringify(expected),
    JSON.stringify(expected, null, 2),
    `[\n${expected.map((element) => JSON.stringify(element)).join('\r\n,\r\n')}\r\n]\r\n`
  ]) {
    t.same(
      (await array(layout)).map((row) => 'object' in row && row.object),
      expected,
      layout
    )
  }
  t.same(await array('[\n {\n"a": 1},\n\n{"b":2}]'), [
    { line: 2, object: { a: 1 } },
    { line: 5, object: { b: 2 } }
  ])
  t.same(await array(' [ ] \n'), [])
})

test('a broken element of an array is one fault, and the following elements are read', async (t) => {
  for (const broken of ['{"a": 1, "b": }', '{"a": "x}', '{"a": 1', '{"a": 1]', '"a"', '7', 'nonsense', '[1]']) {
    const rows = await array(`[\n{"n": 1},\n${broken},\n{"n": 2},\n{"n": 3}\n]\n`)
    t.same(
      rows.flatMap((row) => ('object' in row ? [row.object] : [])),
      [{ n: 1 }, { n: 2 }, { n: 3 }],
      broken
    )
    t.match(rows.filter((row) => 'fault' in row)[0], { line: 3 }, broken)
  }
  const pretty = await array('[\n {\n  "a": "x,\n  "b": "y"\n },\n {\n  "n": 2\n }\n]')
  t.match(pretty, [
    { line: 2, fault: /valid JSON/ },
    { line: 6, object: { n: 2 } }
  ])
  t.equal(pretty.length, 2)
})

test('an unclosed array, and text after its end, are faults', async (t) => {
  t.match(await array('[{"a":1},\n{"a":2}'), [{ object: { a: 1 } }, { object: { a: 2 } }, { fault: /not closed/ }])
  t.match(await array('[{"a":1}]\n{"a":2}\n{"a":3}'), [{ object: { a: 1 } }, { line: 2, fault: /after the end/ }])
})

test('invalid UTF-8 and NUL are a fault of their row only', async (t) => {
  t.match(await rowsFrom(['a\n', 'b\uFFFD\nc', '\0\nd\n'], csvCutter()), [
    { text: 'a' },
    { line: 2, fault: /UTF-8/ },
    { line: 3, fault: /NUL/ },
    { line: 4, text: 'd' }
  ])
})

test('the rows of a text do not depend on where its blocks end', async (t) => {
  const piece = fc.constantFrom(
    '"',
    '"',
    ',',
    '\n',
    '\n',
    '\r\n',
    '\\',
    '{',
    '}',
    '[',
    ']',
    '{"a":1}',
    'x',
    ' ',
    '""',
    ':'
  )
  const text = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''))
  for (const cutter of [csvCutter, ndjsonCutter, arrayCutter]) {
    await fc.assert(
      fc.asyncProperty(text, fc.infiniteStream(fc.integer({ min: 1, max: 5 })), async (whole, sizes) => {
        for (const given of [whole, `[${whole}]`]) {
          const blocks: string[] = []
          for (let at = 0; at < given.length; ) {
            const size = sizes.next().value ?? 1
            blocks.push(given.slice(at, at + size))
            at += size
          }
          const expected = await rowsFrom([given], cutter())
          deepEqual(await rowsFrom(blocks, cutter()), expected, JSON.stringify(given))
        }
      }),
      runs(50)
    )
  }
  t.pass('the same for every cutter')
})
