/** A node of ClickHouse's `EXPLAIN AST`: its type, the rest of its line, and the nodes below it. */
export type SyntaxNode = { readonly type: string; readonly text: string; readonly children: readonly SyntaxNode[] }

/**
 * Parses the lines of `EXPLAIN AST`. The engine prints quoted names as they are, line breaks included, so a name can look
 * like nodes. Each node states the number of its children; a name that adds lines breaks a number.
 * @returns undefined if the lines are not a complete tree
 */
export function syntaxTree(lines: readonly string[]): SyntaxNode | undefined {
  const open: Open[] = []
  let root: Open | undefined
  for (const line of lines) {
    const found = LINE.exec(line)?.groups
    if (found === undefined) return undefined
    const { indent = '', type = '', text = '', count = '0' } = found
    const node: Open = { type, text, count: Number(count), children: [] }
    const parent = open[indent.length - 1]
    if (indent.length > open.length || (parent === undefined) !== (root === undefined)) return undefined
    parent?.children.push(node)
    root ??= node
    open.length = indent.length
    open.push(node)
  }
  return root !== undefined && isComplete(root) ? root : undefined
}

type Open = { readonly type: string; readonly text: string; readonly count: number; readonly children: Open[] }

const LINE = /^(?<indent> *)(?<type>[A-Za-z:]+)(?: (?<text>.*?))??(?: \(children (?<count>\d+)\))?$/

function isComplete({ count, children }: Open): boolean {
  return count === children.length && children.every(isComplete)
}
