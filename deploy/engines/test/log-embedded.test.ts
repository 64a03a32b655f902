import { openEmbeddedLog } from '@gamenet/engines/log'
import { testLog } from './log-contract.js'

testLog({
  name: 'embedded log',
  runs: 100,
  async place(t) {
    const path = t.testdir()
    return {
      async open({ partitions, epoch = 1 }) {
        const log = openEmbeddedLog({ path, partitions, epoch })
        t.teardown(() => log.close())
        return log
      }
    }
  }
})
