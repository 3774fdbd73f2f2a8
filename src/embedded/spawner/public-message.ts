const WORDS: Readonly<Record<string, string>> = {
  EAGAIN: 'the machine cannot run another process',
  ENOMEM: 'the machine is out of memory',
  EMFILE: 'too many descriptors are open',
  ENFILE: 'too many descriptors are open',
};

/** For a tenant: never contains a path of the host. */
export const publicMessage = (error: unknown): string => {
  if (!(error instanceof Error)) return 'it could not be started';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (code !== undefined) return WORDS[code] ?? `it could not be started (${code})`;
  return error.message.includes('/') ? 'it could not be started' : error.message;
};

/**
 * For a tenant. Our own messages name only paths inside; messages of the system may name host
 * paths.
 */
export const startFailure = (error: unknown): string =>
  error instanceof Error && !('code' in error) ? error.message : publicMessage(error);
