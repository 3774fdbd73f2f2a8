import { expect } from 'chai';
import type { IncomingMessage } from 'node:http';
import { addressGroup } from '../../src/http/limits/address-group.ts';
import { clientAddresses, parseAddressRange } from '../../src/http/limits/client-address.ts';

const from = (
  remoteAddress: string,
  headers: IncomingMessage['headers'] = {},
  more: object = {},
): IncomingMessage =>
  ({
    socket: { remoteAddress, localAddress: '10.0.0.1', localPort: 8080, ...more },
    headers,
  }) as unknown as IncomingMessage;

describe("a client's address", () => {
  const { of, isProxy } = clientAddresses(['10.0.0.0/8', '2001:db8::/32', '192.0.2.7']);

  it('is that of its connection, whatever the request claims', () => {
    expect(
      of(from('203.0.113.1', { 'x-forwarded-for': '198.51.100.1', forwarded: 'for=198.51.100.2' })),
    ).to.equal('203.0.113.1');
    expect(
      clientAddresses([]).of(from('10.0.0.9', { 'x-forwarded-for': '198.51.100.1' })),
    ).to.equal('10.0.0.9');
    expect(of(from('::ffff:203.0.113.1'))).to.equal('203.0.113.1');
  });

  it('is the last untrusted one behind a trusted proxy', () => {
    const cases: [IncomingMessage['headers'], string][] = [
      [{ 'x-forwarded-for': '198.51.100.1' }, '198.51.100.1'],
      [{ 'x-forwarded-for': '1.1.1.1, 198.51.100.1, 10.9.9.9' }, '198.51.100.1'],
      [{ 'x-forwarded-for': '198.51.100.1:4711, 2001:db8::5' }, '198.51.100.1'],
      [{ 'x-forwarded-for': '10.1.1.1, 10.2.2.2' }, '10.1.1.1'],
      [{ 'x-forwarded-for': 'nonsense, 10.2.2.2' }, '10.2.2.2'],
      [{ 'x-forwarded-for': '' }, '10.0.0.9'],
      [{ forwarded: 'for=198.51.100.1;proto=https, for="[2001:db8:1::17]:4711"' }, '198.51.100.1'],
      [{ forwarded: 'for=198.51.100.1', 'x-forwarded-for': '198.51.100.2' }, '198.51.100.2'],
      [{ forwarded: 'for=_hidden' }, '10.0.0.9'],
      [{}, '10.0.0.9'],
    ];
    for (const [headers, expected] of cases)
      expect([headers, of(from('10.0.0.9', headers))]).to.deep.equal([headers, expected]);
    expect(of(from('::ffff:192.0.2.7', { 'x-forwarded-for': '2a00::1' }))).to.equal('2a00::1');
  });

  it('depends on the last 32 proxies only', () => {
    const chain = ['198.51.100.1', ...Array.from({ length: 100_000 }, () => '10.0.0.2')].join(',');
    expect(of(from('10.0.0.9', { 'x-forwarded-for': chain }))).to.equal('10.0.0.2');
  });

  it("counts as a proxy's within the trusted ranges", () => {
    expect([
      isProxy('10.255.0.1'),
      isProxy('192.0.2.7'),
      isProxy('192.0.2.8'),
      isProxy('2001:db8:ffff::1'),
      isProxy('2001:db9::1'),
      isProxy('nonsense'),
      isProxy(undefined),
    ]).to.deep.equal([true, true, false, true, false, false, false]);
  });

  it('counts together with its /64', () => {
    for (const [address, group] of [
      ['203.0.113.1', '203.0.113.1'],
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
      ['2001:DB8:1:2::1', '2001:db8:1:2::/64'],
      ['2001:db8::1', '2001:db8:0:0::/64'],
      ['::1', '0:0:0:0::/64'],
      ['fe80::1%eth0', 'fe80:0:0:0::/64'],
      ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
    ] as const)
      expect([address, addressGroup(address)]).to.deep.equal([address, group]);
  });
});

describe("the daemon's address for its clients", () => {
  const { base } = clientAddresses(['10.0.0.9']);

  it('is the requested Host, with the protocol of the connection', () => {
    expect(base(from('203.0.113.1', { host: 'pool.example:8080' }))).to.equal(
      'http://pool.example:8080',
    );
    expect(base(from('203.0.113.1', { host: 'pool.example' }, { encrypted: true }))).to.equal(
      'https://pool.example',
    );
    expect(
      base(
        from('203.0.113.1', {
          host: 'pool.example',
          'x-forwarded-for': '1.1.1.1',
          'x-forwarded-proto': 'https',
        }),
      ),
    ).to.equal('http://pool.example');
  });

  it('is the one that a trusted proxy sends', () => {
    expect(
      base(
        from('10.0.0.9', {
          host: 'pool.example',
          'x-forwarded-for': '1.1.1.1',
          'x-forwarded-proto': 'https',
        }),
      ),
    ).to.equal('https://pool.example');
    expect(
      base(
        from('10.0.0.9', { host: 'inner', forwarded: 'for=1.1.1.1;proto=https;host=pool.example' }),
      ),
    ).to.equal('https://pool.example');
    expect(
      base(
        from('10.0.0.9', {
          host: 'pool.example',
          'x-forwarded-for': '1.1.1.1',
          'x-forwarded-proto': 'gopher',
        }),
      ),
    ).to.equal('http://pool.example');
  });

  it('is its own if the Host is invalid', () => {
    expect(base(from('203.0.113.1', { host: 'a"b<c' }))).to.equal('http://10.0.0.1:8080');
    expect(base(from('203.0.113.1', {}, { localAddress: '::1' }))).to.equal('http://[::1]:8080');
  });
});

describe('an address range', () => {
  it('is an address or a CIDR range', () => {
    for (const text of ['10.0.0.1', '10.0.0.0/8', '::1', '2001:db8::/32', '0.0.0.0/0'])
      expect(parseAddressRange(text), text).not.to.equal(undefined);
    for (const text of [
      '',
      '10.0.0',
      '10.0.0.0/33',
      '::/129',
      '10.0.0.0/8/8',
      '10.0.0.0/',
      'localhost',
      '10.0.0.0/-1',
    ])
      expect(parseAddressRange(text), text).to.equal(undefined);
  });
});
