import type { ConsoleRole } from '../model/console-session.ts';

export interface LocalOperator {
  /** A DNS-1123 label. */
  readonly name: string;
  readonly role: ConsoleRole;
  /** argon2id, in the form that begins with `$argon2id$`. */
  readonly passwordHash: string;
  /** Their API keys belong to this person, beside those of the user of the same name. */
  readonly users: readonly string[];
  /** Distinguishes this person from an earlier holder of the name. */
  readonly addedAt: string;
}

/**
 * Each answer reflects the file's current content. All methods throw `unavailable` if the file
 * can't be read or parsed, so nobody can log in then.
 */
export interface Operators {
  find(name: string): LocalOperator | undefined;
  list(): readonly LocalOperator[];
  /** Names, and people of OpenID Connect. */
  locked(): readonly string[];
  isLocked(identity: string): boolean;
}

export interface OperatorsChange {
  put(operator: LocalOperator): void;
  remove(name: string): boolean;
  lock(identity: string): void;
  unlock(identity: string): boolean;
}

/** A few at a time. Rejects with `unavailable` if too many calls wait. */
export interface Passwords {
  hash(password: string): Promise<string>;
  /** Without a hash, takes the same time and returns false. */
  verify(password: string, hash: string | undefined): Promise<boolean>;
}
