export interface OptionalListener {
  readonly setting: string;
  readonly host: string;
  readonly port: number;
  readonly given: boolean;
  readonly listen: (at: { readonly host: string; readonly port: number }) => Promise<number>;
  readonly taken: (fields: { readonly address: string }) => void;
}

/**
 * Resolves with host and port in URL form. If the address is taken, rejects for a configured one,
 * and is undefined for the default, since daemons may share a machine.
 */
export const listenOrDoWithout = async (of: OptionalListener): Promise<string | undefined> => {
  const { setting, host, port, given, listen, taken } = of;
  const shown = host.includes(':') ? `[${host}]` : host;
  try {
    return `${shown}:${await listen({ host, port })}`;
  } catch (cause) {
    const address = `${shown}:${port}`;
    if (!isTaken(cause)) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${setting}: can't listen at ${address}: ${why}`, { cause });
    }
    if (given)
      throw new Error(
        `${setting}: another program uses the address ${address}; choose another address, ` +
          'or none',
        { cause },
      );
    taken({ address });
    return undefined;
  }
};

const isTaken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
