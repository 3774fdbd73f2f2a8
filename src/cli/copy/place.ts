import { CliFailure } from '../common/failure.ts';

export type Place =
  | { readonly kind: 'here'; readonly path: string }
  | { readonly kind: 'sandbox'; readonly sandboxId: string; readonly path: string }
  | { readonly kind: 'stream' };

/** A local path that looks like `ID:PATH` needs `./` before it. */
export const placeOf = (text: string): Place => {
  if (text === '-') return { kind: 'stream' };
  const [, sandboxId, path] = IN_SANDBOX.exec(text) ?? [];
  if (sandboxId === undefined || path === undefined) return { kind: 'here', path: text };
  if (path === '' || path.includes('\0'))
    throw new CliFailure(`there is no path after ${sandboxId}:`, [
      `such as ${sandboxId}:/tmp/note`,
    ]);
  return { kind: 'sandbox', sandboxId, path };
};

/** In a fleet, the cluster's name precedes the UUID. */
const IN_SANDBOX = /^((?:[a-z0-9-]{1,63}\.)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([^]*)$/i;
