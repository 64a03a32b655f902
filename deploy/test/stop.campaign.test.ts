import { test } from 'tap'
import { startGamenet, untilLoaded } from './service/gamenet.js'

test('a service that is stopped while it loads the whole history of the demo ends with 0, every time', async (t) => {
  const directory = t.testdir()
  for (const events of [0, 2_000, 20_000, 40_000]) {
    const service = await startGamenet({ DATA_DIR: `${directory}/data` })
    t.teardown(() => service.kill())
    await untilLoaded(service.operatorUrl, events)
    t.equal(await service.stop(), 0, `with ${events} events loaded`)
    t.equal(service.stderr().replace(/^.*runs as root.*\n/m, ''), '', 'and logs no trouble')
  }
})
