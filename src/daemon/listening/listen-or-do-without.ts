/** A listener that a daemon can do without. */
export interface OptionalListener {
  /** The setting that says where it listens. */
  readonly setting: string;
  readonly host: string;
  readonly port: number;
  /** By whoever runs the daemon, who wants it there or not at all. */
  readonly given: boolean;
  /** Resolves with the port once it listens. */
  readonly listen: (at: { readonly host: string; readonly port: number }) => Promise<number>;
  /** Is told where nobody asked for it, and another program has its address. */
  readonly taken: (fields: { readonly address: string }) => void;
}

/**
 * Resolves with the host and port of the listener, as a URL has them, once it listens. Where its
 * address is taken it rejects, or, where nobody asked for it, resolves without one: several daemons
 * share a machine.
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
        `${setting}: another program has the address ${address}; choose another one, or none`,
        { cause },
      );
    taken({ address });
    return undefined;
  }
};

const isTaken = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
