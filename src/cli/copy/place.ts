import { CliFailure } from '../common/failure.ts';

/** One end of a copy: a local path, a path in a sandbox, or a standard stream. */
export type Place =
  | { readonly kind: 'here'; readonly path: string }
  | { readonly kind: 'sandbox'; readonly sandboxId: string; readonly path: string }
  | { readonly kind: 'stream' };

/**
 * Parses `ID:PATH`, `-`, or a local path. A local path that looks like `ID:PATH` needs `./` before
 * it.
 */
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

/** Matches a UUID, with the cluster's name before it in a fleet. */
const IN_SANDBOX = /^((?:[a-z0-9-]{1,63}\.)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([^]*)$/i;
