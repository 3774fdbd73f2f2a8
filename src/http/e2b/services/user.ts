import { invalidArgument } from '../../../model/refusals.ts';

/** A sandbox has one user, with the SDKs' name and its own. */
const NAMES: ReadonlySet<string> = new Set(['', 'user', 'sandbox']);

export const requireUser = (name: string): void => {
  if (!NAMES.has(name))
    throw invalidArgument(
      'user',
      `calls as ${JSON.stringify(name.slice(0, 64))} are not possible here; omit the user: ` +
        "everything runs as the sandbox's own user",
    );
};

/** From `Authorization: Basic`; empty without a user. */
export const userOf = (authorization: string | null | undefined): string => {
  const [, encoded = ''] = /^Basic ([A-Za-z0-9+/=]*)$/i.exec(authorization ?? '') ?? [];
  return Buffer.from(encoded, 'base64').toString('utf8').split(':', 1)[0] ?? '';
};
