import { z } from 'zod';
import { parseDuration } from '../../model/durations.ts';
import { DNS_LABEL_FORM, isDnsLabel } from '../../model/identifiers.ts';
import { parseVolumeDirectory } from '../../model/templates/volume-directory.ts';
import { sizeLimitOf } from '../../model/pools/quota.ts';

export const label = (description: string) =>
  z.string('must be text').refine(isDnsLabel, DNS_LABEL_FORM).meta({ description });

/** A relative path starts at the folder of its settings file, or else at the working folder. */
export const path = (description: string) =>
  z
    .string('must be text')
    .min(1, 'must not be empty')
    .max(4_096)
    .refine((value) => !value.includes('\0'), 'must not contain a NUL')
    .meta({ description, kind: 'path' });

export const whole = (least: number, most: number, description: string) => {
  const error = `must be a whole number from ${least} to ${most}`;
  return z.number(error).int(error).min(least, error).max(most, error).meta({ description });
};

export const sizeQuota = (resource: 'cpu' | 'memory', description: string) =>
  z
    .string('must be a quantity, in quotes')
    .refine(
      (text) => sizeLimitOf(resource, text) !== undefined,
      resource === 'cpu'
        ? 'must be a cpu quantity such as "64" or 500m'
        : 'must be a memory quantity such as 256Gi',
    )
    .meta({ description });

export const duration = (least: number, most: number, description: string) =>
  z
    .string('must be a duration such as 90s, 30m or 1h30m')
    .transform((value, context) => {
      const milliseconds = parseDuration(value);
      if (milliseconds === undefined)
        context.addIssue('must be a duration such as 90s, 30m or 1h30m');
      else if (milliseconds < least || milliseconds > most)
        context.addIssue(`must be a duration from ${least / 1_000}s to ${most / 1_000}s`);
      else return milliseconds;
      return z.NEVER;
    })
    .meta({ description });

export const choice = <const T extends readonly [string, ...string[]]>(
  allowed: T,
  description: string,
) => z.enum(allowed, `must be one of ${allowed.join(', ')}`).meta({ description });

export const listener = (description: string) =>
  z
    .string('must be HOST:PORT, in quotes')
    .transform((value, context) => {
      const match = /^(?:\[([0-9a-fA-F:.]{2,45})\]|([A-Za-z0-9.-]{1,253})):(\d{1,5})$/.exec(value);
      const host = match?.[1] ?? match?.[2];
      if (host !== undefined && Number(match?.[3]) <= 65_535)
        return { host, port: Number(match?.[3]) };
      context.addIssue('must be HOST:PORT, an IPv6 host in brackets, port 0 to 65535');
      return z.NEVER;
    })
    .meta({ description });

export const listenerOrNone = (description: string) =>
  z
    .union([z.literal('none'), listener(description)], 'must be HOST:PORT, in quotes, or none')
    .meta({ description });

export const parseUrl = (value: string): URL | undefined =>
  URL.canParse(value) ? new URL(value) : undefined;

export const origin = z.string().refine((value) => {
  const url = parseUrl(value);
  return url !== undefined && /^https?:$/.test(url.protocol) && url.origin === value;
}, 'must be an origin such as https://console.example.com, without a path');

/** HTTPS except on loopback: with plain HTTP, an attacker on the network could log in as anyone. */
export const issuer = z.string('must be text').refine((value) => {
  const url = parseUrl(value);
  return (
    url !== undefined &&
    url.username === '' &&
    url.search === '' &&
    url.hash === '' &&
    (url.protocol === 'https:' ||
      (url.protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname)))
  );
}, 'must be an https:// URL without query and fragment, or an http:// URL on loopback');

/** TLS except on loopback: otherwise an attacker could read and change the traffic. */
export const managerUrl = z.string('must be text').refine((value) => {
  const url = parseUrl(value);
  return (
    url !== undefined &&
    url.username === '' &&
    url.password === '' &&
    url.pathname === '/' &&
    url.search === '' &&
    url.hash === '' &&
    (url.protocol === 'wss:' ||
      (url.protocol === 'ws:' && /^(localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname)))
  );
}, 'must be wss:// URLs without a path, or ws:// URLs on loopback');

export const redisUrl = z.string().refine((value) => {
  const url = parseUrl(value);
  return (
    url !== undefined &&
    /^rediss?:$/.test(url.protocol) &&
    url.hostname !== '' &&
    url.username === '' &&
    url.password === '' &&
    /^\/?$/.test(url.pathname)
  );
}, 'must be URLs such as rediss://redis.example.com:6379, without credentials');

export const volumeDirectory = z
  .string('must be text')
  .max(4_400)
  .transform((value, context) => {
    const directory = parseVolumeDirectory(value);
    if (directory) return directory;
    context.addIssue(
      'must be NAMESPACE/CLAIM=/PATH: two DNS-1123 labels, and an absolute path without ..',
    );
    return z.NEVER;
  });
