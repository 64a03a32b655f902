import { equal } from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { isPublicHost } from '../src/request/public-address.js'

const isPublic = (host: string) => isPublicHost(new URL(`https://${host}/a.png`))

test('addresses on loopback and in private ranges are not public, in any form of numbers', async (t) => {
  const hosts = [
    ...[
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f000001',
      '0x7f.1',
      '0177.0.0.1',
      '0',
      '0.0.0.0',
      '10.1.2.3',
      '0xa000001'
    ],
    ...['172.16.0.1', '172.31.255.255', '192.168.1.1', '0300.0250.1.1', '3232235777', '169.254.169.254', '100.64.0.1'],
    ...[
      '192.0.0.8',
      '198.18.0.1',
      '224.0.0.1',
      '255.255.255.255',
      '１２７.０.０.１',
      '127。0。0。1',
      '①②⑦.0.0.1',
      '127.0.0.1.'
    ],
    ...[
      '[::]',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:8.8.8.8]',
      '[::127.0.0.1]',
      '[fe80::1]',
      '[fc00::1]',
      '[fd12::1]'
    ],
    ...[
      '[ff02::1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
      '[2001:0:7f00:1::]',
      '[2001:db8::1]',
      '[fec0::1]',
      '[100::1]'
    ],
    ...['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'ｌocalhost', 'intranet', 'router.lan', 'printer.local'],
    ...[
      'metadata.google.internal',
      'metadata.google.internal.',
      'nas.home.arpa',
      'a.home',
      'x.localdomain',
      'a.corp',
      'com'
    ]
  ]
  for (const host of hosts) t.notOk(isPublic(host), host)
  for (const host of [
    '8.8.8.8',
    '134744072',
    '172.32.0.1',
    '100.128.0.1',
    '[2606:4700::1111]',
    '[2001:4860:4860::8888]'
  ])
    t.ok(isPublic(host), host)
  for (const host of [
    'images.example.org',
    'example.org.',
    'localhost.example.org',
    'internal.org',
    'bücher.example',
    'a.co'
  ])
    t.ok(isPublic(host), host)
})

test('an address of IPv4 is judged alike in all of its spellings', async () => {
  const part = fc.oneof(fc.nat(255), fc.constantFrom(0, 10, 127, 168, 169, 172, 192, 198, 224))
  const radix = fc.constantFrom<(part: number) => string>(
    String,
    (n) => `0x${n.toString(16)}`,
    (n) => `0${n.toString(8)}`
  )
  fc.assert(
    fc.property(fc.tuple(part, part, part, part), fc.tuple(radix, radix, radix, radix), (parts, radixes) => {
      const [a, b, c, d] = parts
      const plain = isPublic(parts.join('.'))
      const spelled = parts.map((each, at) => radixes[at]?.(each) ?? '').join('.')
      equal(isPublic(spelled), plain, spelled)
      equal(isPublic(String(((a * 256 + b) * 256 + c) * 256 + d)), plain)
      equal(isPublic(`[::ffff:${parts.join('.')}]`), false)
    }),
    { seed: 1, numRuns: 500 }
  )
})
