import { createRequire } from 'node:module';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';

export type SqlValue = string | number | null;

/**
 * Hazard: a connection closes when it is garbage collected, even while its statements are in use.
 */
export type Connection = DatabaseSyncInstance;
export type Statement = ReturnType<Connection['prepare']>;

interface Library {
  readonly DatabaseSync: new (path: string, options?: { readonly timeout?: number }) => Connection;
  readonly StatementSync: { readonly prototype: object };
}

/** Node's own SQLite from 22.16 on, else a package of the same interface. */
export const connect = (path: string, options: { readonly busyTimeoutMs: number }): Connection => {
  const { DatabaseSync } = library();
  return new DatabaseSync(path, { timeout: options.busyTimeoutMs });
};

/**
 * SQLite's primary code, or 1 if the library hides it. Undefined for other errors, such as a bad
 * parameter.
 */
export const sqliteCode = (error: unknown): number | undefined => {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'ERR_SQLITE_ERROR')
    return undefined;
  return 'errcode' in error && typeof error.errcode === 'number' ? error.errcode & 0xff : 1;
};

export const SQLITE_BUSY = 5;
export const SQLITE_LOCKED = 6;
export const SQLITE_NOTADB = 26;

const library = (): Library => {
  const builtIn = withoutItsWarning(() => process.getBuiltinModule('node:sqlite') as unknown);
  const require = createRequire(import.meta.url);
  return isLibrary(builtIn) ? builtIn : require('@photostructure/sqlite');
};

/** Node 22 warns that SQLite is experimental. */
const withoutItsWarning = <T>(load: () => T): T => {
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = (...args: readonly unknown[]): void => {
    if (!(args[1] === 'ExperimentalWarning' && String(args[0]).startsWith('SQLite is')))
      Reflect.apply(emitWarning, undefined, args);
  };
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
};

const isLibrary = (module: unknown): module is Library =>
  typeof module === 'object' &&
  module !== null &&
  'StatementSync' in module &&
  typeof module.StatementSync === 'function' &&
  'setReturnArrays' in module.StatementSync.prototype;
