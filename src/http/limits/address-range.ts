import { isIP } from 'node:net';

/** IP addresses that begin with the same bits. */
export interface AddressRange {
  readonly address: string;
  readonly bits: number;
  readonly family: 'ipv4' | 'ipv6';
}

/** An IP address, or a CIDR range (RFC 4632), of either version; undefined for what is neither. */
export const parseAddressRange = (text: string): AddressRange | undefined => {
  const [address = '', prefix, ...more] = text.split('/');
  const version = isIP(address);
  const longest = version === 6 ? 128 : 32;
  if (version === 0 || more.length > 0 || (prefix !== undefined && !/^\d{1,3}$/.test(prefix)))
    return undefined;
  const bits = prefix === undefined ? longest : Number(prefix);
  return bits > longest ? undefined : { address, bits, family: version === 6 ? 'ipv6' : 'ipv4' };
};
