import { equal } from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Refusal } from '@gamenet/schemas'
import fc from 'fast-check'
import Fastify from 'fastify'
import { test } from 'tap'
import { SlotsPerAddress } from '../src/http/slots-per-address.js'
import { clientAddresses } from '../src/request/client-address.js'

function from(remoteAddress: string | undefined, forwarded?: string): IncomingMessage {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  return { socket: { remoteAddress }, headers } as unknown as IncomingMessage
}

test('a client is limited by its own address, whichever way it is written; IPv6 by the network of 64 bits', async (t) => {
  const clients = clientAddresses()
  for (const [peer, address] of [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:0DB8:0:0:ffff:1:2:3', '2001:db8:0:0::/64'],
    ['2001:db8:0:1::', '2001:db8:0:1::/64'],
    ['1:2:3:4:5:6:192.0.2.1', '1:2:3:4::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['127.0.0.1', undefined],
    ['127.8.9.10', undefined],
    ['::1', undefined],
    ['::ffff:127.0.0.1', undefined],
    // A socket in the file system, or a connection that is closed already.
    [undefined, undefined]
  ]) {
    t.equal(clients.of(from(peer)), address, String(peer))
    t.equal(clients.ofPeer(from(peer).socket), address, String(peer))
  }
})

test('behind trusted proxies the last address that is none of theirs counts, not the word of the client', async (t) => {
  const clients = clientAddresses(['127.0.0.1', '10.0.0.0/8', '2001:db8:1::/48'])
  for (const [peer, forwarded, address] of [
    ['127.0.0.1', '192.0.2.1', '192.0.2.1'],
    ['::ffff:10.1.2.3', '192.0.2.9, 192.0.2.1,10.0.0.1', '192.0.2.1'],
    ['2001:db8:1:2::3', '2001:db8:2::1', '2001:db8:2:0::/64'],
    ['10.0.0.1', '192.0.2.1:4711', '192.0.2.1'],
    ['10.0.0.1', '[2001:db8:2::1]:4711', '2001:db8:2:0::/64'],
    ['10.0.0.1', '::ffff:192.0.2.1', '192.0.2.1'],
    ['10.0.0.1', '127.0.0.2', undefined],
    ['10.0.0.1', '192.0.2.1, unknown', undefined],
    ['10.0.0.1', '', undefined],
    ['10.0.0.1', undefined, undefined],
    ['10.0.0.1', '10.0.0.7', '10.0.0.7']
  ]) {
    t.equal(clients.of(from(peer, forwarded)), address, `${peer} ${forwarded}`)
  }
  t.equal(clients.ofPeer(from('10.0.0.1').socket), undefined)
  t.equal(clients.untrustedProxies.size, 0)
})

test('a peer that sends X-Forwarded-For untrusted has no limit of its own, and is named once', async (t) => {
  const named: string[] = []
  const clients = clientAddresses(['10.0.0.1'], (peer) => named.push(peer))
  t.equal(clients.ofPeer(from('192.0.2.7').socket), '192.0.2.7')
  t.equal(clients.of(from('192.0.2.7', '192.0.2.1')), undefined)
  t.equal(clients.of(from('::ffff:192.0.2.7', '192.0.2.1')), undefined)
  t.equal(clients.of(from('127.0.0.1', '192.0.2.1')), undefined)
  t.equal(clients.ofPeer(from('192.0.2.7').socket), undefined, 'its connections are those of many clients')
  t.same(named, ['192.0.2.7', '127.0.0.1'])
  for (let n = 0; n < 100; n += 1) clients.of(from(`198.51.100.${n}`, '192.0.2.1'))
  t.equal(clients.untrustedProxies.size, 10)
  t.equal(named.length, 10)
})

test('the log and the limits mean the same client', async (t) => {
  const trusted = ['10.0.0.0/8', '192.168.1.1', 'fd00::/8']
  const clients = clientAddresses(trusted)
  const some = fc.constantFrom(
    '10.0.0.1',
    '192.168.1.1',
    '192.168.1.2',
    '203.0.113.5',
    'fd00::1',
    '::ffff:10.0.0.9',
    '2001:db8::1'
  )
  const byFunction = Fastify({ trustProxy: clients.isTrusted })
  const byList = Fastify({ trustProxy: trusted })
  for (const app of [byFunction, byList]) app.get('/', async ({ ip }) => ip)
  t.after(() => Promise.all([byFunction.close(), byList.close()]))
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('10.0.0.1', '192.168.1.1', 'fd00::1'),
      fc.array(some, { minLength: 1 }),
      async (peer, chain) => {
        const forwarded = chain.join(', ')
        const asked = { url: '/', remoteAddress: peer, headers: { 'x-forwarded-for': forwarded } }
        const [ip, other] = [(await byFunction.inject(asked)).body, (await byList.inject(asked)).body]
        equal(ip, other)
        equal(clients.of(from(peer, forwarded)), clientAddresses().ofPeer(from(ip).socket))
      }
    ),
    { numRuns: 100 }
  )
})

test('an address has so many slots, and no entry stays behind', async () => {
  await fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.constantFrom('a', 'b', undefined))), (calls) => {
      const slots = new SlotsPerAddress(2, 'exports_per_address', 5)
      const take = (address: string | undefined) => {
        try {
          return slots.take(address)
        } catch (error) {
          if (error instanceof Refusal && error.code === 'exports_per_address') return undefined
          throw error
        }
      }
      const held: { address: string | undefined; release: () => void }[] = []
      for (const [takes, address] of calls) {
        if (!takes) {
          const given = held.shift()
          given?.release()
          given?.release()
          continue
        }
        const heldBefore = held.filter((each) => each.address === address).length
        const release = take(address)
        if ((release !== undefined) !== (address === undefined || heldBefore < 2)) return false
        if (release !== undefined) held.push({ address, release })
      }
      for (const { release } of held) release()
      return ['a', 'b'].every((address) => take(address) !== undefined && take(address) !== undefined)
    })
  )
})
