import { invalidArgument } from '../../../model/refusals.ts';

/** Everything in a sandbox runs as its one user: the SDKs' name of it, and its own. */
const NAMES: ReadonlySet<string> = new Set(['', 'user', 'sandbox']);

/** Refuses to act as anybody but the sandbox's user. */
export const requireUser = (name: string): void => {
  if (!NAMES.has(name))
    throw invalidArgument(
      'user',
      `no calls are made as ${JSON.stringify(name.slice(0, 64))} here; ` +
        "leave it out: all is done as the sandbox's own user",
    );
};

/** Returns the user whom a call names by `Authorization: Basic`; empty where it names none. */
export const userOf = (authorization: string | null | undefined): string => {
  const [, encoded = ''] = /^Basic ([A-Za-z0-9+/=]*)$/i.exec(authorization ?? '') ?? [];
  return Buffer.from(encoded, 'base64').toString('utf8').split(':', 1)[0] ?? '';
};
