import { parseArgs } from 'node:util'
import { openFront } from './front.js'

const CLOSE_WAIT_MS = 5000

const { values } = parseArgs({
  options: {
    path: { type: 'string' },
    port: { type: 'string', default: '0' },
    'break-off': { type: 'boolean', default: false }
  }
})
if (values.path === undefined) {
  process.stderr.write('Usage: node main.js --path DIR [--port N] [--break-off]\n')
  process.exit(2)
}
const front = await openFront({ path: values.path, port: Number(values.port), breaksOff: values['break-off'] })
process.stdout.write(`${front.url}\n`)
const stop = (): void => {
  // `process.exit` would wait for a statement that never ends.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), CLOSE_WAIT_MS).unref()
  void front.close().then(() => process.exit(0))
}
process.once('SIGTERM', stop)
process.once('SIGINT', stop)
