import { isIPv6 } from 'node:net';

/** Unwraps an IPv4-mapped IPv6 address. */
export const plainAddress = (address: string): string =>
  /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(address) ? address.slice(7) : address;

/** Addresses that count as one client: an IPv4 address, or the /64 of an IPv6 address. */
export const addressGroup = (address: string): string => {
  if (!isIPv6(address)) return address;
  const [head = '', tail = ''] = address.toLowerCase().split('%')[0]?.split('::') ?? [];
  const before = head === '' ? [] : head.split(':');
  const after = tail === '' ? [] : tail.split(':');
  const missing = address.includes('::')
    ? 8 - before.length - after.length - (address.includes('.') ? 1 : 0)
    : 0;
  const groups = [...before, ...Array.from({ length: Math.max(0, missing) }, () => '0'), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
};
