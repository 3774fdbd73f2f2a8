import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { plainAddress } from './address-group.ts';

export interface ClientAddresses {
  /** Empty if the connection is closed. */
  readonly of: (request: IncomingMessage) => string;
  /** `https://host:port` as the client sees it. */
  readonly base: (request: IncomingMessage) => string;
  readonly isProxy: (remoteAddress: string | undefined) => boolean;
}

/**
 * Only trusted proxies' X-Forwarded-* count, else their Forwarded (RFC 7239). The client is the
 * last address that is not a trusted proxy.
 */
export const clientAddresses = (trustedProxies: readonly string[]): ClientAddresses => {
  const trusted = blockListOf(trustedProxies);
  const isProxy = (remoteAddress: string | undefined): boolean => {
    const address = plainAddress(remoteAddress ?? '');
    const version = isIP(address);
    return (
      trustedProxies.length > 0 &&
      version !== 0 &&
      trusted.check(address, version === 6 ? 'ipv6' : 'ipv4')
    );
  };
  return {
    isProxy,
    of: (request) => {
      const own = plainAddress(request.socket.remoteAddress ?? '');
      if (!isProxy(own)) return own;
      let client = own;
      for (const { address } of hopsOf(request).toReversed()) {
        if (isIP(address) === 0) break;
        client = address;
        if (!isProxy(address)) break;
      }
      return client;
    },
    base: (request) => {
      const hop = isProxy(request.socket.remoteAddress) ? hopsOf(request).at(-1) : undefined;
      const protocol = hop?.protocol ?? ('encrypted' in request.socket ? 'https' : 'http');
      const host = hop?.host ?? request.headers.host;
      if (host !== undefined && HOST.test(host) && URL.canParse(`${protocol}://${host}`))
        return `${protocol}://${host}`;
      const { localAddress = '127.0.0.1', localPort = 0 } = request.socket;
      const own = localAddress.includes(':') ? `[${localAddress}]` : localAddress;
      return `${protocol}://${own}:${localPort}`;
    },
  };
};

interface Hop {
  readonly address: string;
  readonly protocol: string | undefined;
  readonly host: string | undefined;
}

export const HOST = /^(?:\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::\d{1,5})?$/;
const MOST_HOPS = 32;

const hopsOf = ({ headers }: IncomingMessage): readonly Hop[] => {
  const forwardedFor = headers['x-forwarded-for'];
  if (forwardedFor === undefined) return partsOf(headers.forwarded).map(forwardedHop);
  const protocol = protocolOf(partsOf(headers['x-forwarded-proto']).at(-1));
  return partsOf(forwardedFor).map((address) => ({
    address: plainAddress(withoutPort(address)),
    protocol,
    host: undefined,
  }));
};

const partsOf = (header: string | readonly string[] | undefined): readonly string[] =>
  (typeof header === 'string' ? header : (header ?? []).join(','))
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .slice(-MOST_HOPS);

/** Parses `for=192.0.2.1;proto=https;host=example.com`. */
const forwardedHop = (element: string): Hop => {
  const pairs = new Map(
    element.split(';').map((pair) => {
      const [name = '', value = ''] = pair.split('=', 2);
      return [name.trim().toLowerCase(), value.trim().replace(/^"(.*)"$/, '$1')];
    }),
  );
  return {
    address: plainAddress(withoutPort(pairs.get('for') ?? '')),
    protocol: protocolOf(pairs.get('proto')),
    host: pairs.get('host'),
  };
};

const protocolOf = (text: string | undefined): string | undefined => {
  const protocol = text?.toLowerCase();
  return protocol === 'http' || protocol === 'https' ? protocol : undefined;
};

/** As in `[2001:db8::1]:4711` or `192.0.2.1:4711`. */
const withoutPort = (text: string): string =>
  /^\[([^\]]+)\]/.exec(text)?.[1] ?? text.replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1');

const blockListOf = (ranges: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const text of ranges) {
    const range = parseAddressRange(text);
    if (range) list.addSubnet(range.address, range.bits, range.family);
  }
  return list;
};

export interface AddressRange {
  readonly address: string;
  readonly bits: number;
  readonly family: 'ipv4' | 'ipv6';
}

/** RFC 4632 */
export const parseAddressRange = (text: string): AddressRange | undefined => {
  const [address = '', prefix, ...more] = text.split('/');
  const version = isIP(address);
  const longest = version === 6 ? 128 : 32;
  if (version === 0 || more.length > 0 || (prefix !== undefined && !/^\d{1,3}$/.test(prefix)))
    return undefined;
  const bits = prefix === undefined ? longest : Number(prefix);
  return bits > longest ? undefined : { address, bits, family: version === 6 ? 'ipv6' : 'ipv4' };
};
