import { z } from 'zod';

export interface NamedValue {
  readonly name: string;
  readonly value: string;
}

export const collectorUrl = z.string('must be text').refine((value) => {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  return (
    url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    url.username === '' &&
    url.password === '' &&
    url.search === '' &&
    url.hash === ''
  );
}, 'must be a URL such as http://127.0.0.1:4318, without credentials');

/**
 * `NAME=VALUE` in the form of OpenTelemetry's variables, with commas, percent signs and non-ASCII
 * percent-encoded. A fault never quotes the value, which may be a secret.
 */
const namedValue = (isGood: (named: NamedValue) => boolean, problem: string) =>
  z
    .string('must be text')
    .max(8_192)
    .transform((text, context) => {
      const [, name, value] = (/^([^=]*)=(.*)$/s.exec(text) ?? []).map(decoded);
      if (name !== undefined && value !== undefined && isGood({ name, value }))
        return { name, value };
      context.addIssue(problem);
      return z.NEVER;
    });

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text.trim());
  } catch {
    return undefined;
  }
};

export const httpHeader = namedValue(
  ({ name, value }) => /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\t\x20-\x7e]*$/.test(value),
  'must be NAME=VALUE, a header with its value percent-encoded',
);

export const resourceAttribute = namedValue(
  ({ name, value }) => /^[\x21-\x7e]{1,255}$/.test(name) && value.length <= 255,
  'must be NAME=VALUE, percent-encoded, each of at most 255 characters',
);
