import type { ConsoleRole } from '../model/console-session.ts';

/** A person with a password at the console. */
export interface LocalOperator {
  /** A DNS-1123 label; identifies the person. */
  readonly name: string;
  readonly role: ConsoleRole;
  /** Hash of the password by argon2id, in the form that begins with `$argon2id$`. */
  readonly passwordHash: string;
  /** Users whose API keys are this person's, beside the one of the same name. */
  readonly users: readonly string[];
  /** Tells this person from another one who had the name before. */
  readonly addedAt: string;
}

/**
 * Who may log in with a password, and whom nobody lets in. Each answer is as the file says now; all
 * of them throw `unavailable` where it can't be read or understood, so that nobody gets in then.
 */
export interface Operators {
  find(name: string): LocalOperator | undefined;
  list(): readonly LocalOperator[];
  /** Identities that are locked: names, and people of OpenID Connect. */
  locked(): readonly string[];
  isLocked(identity: string): boolean;
}

/** Changes them, where the daemon itself keeps the file. */
export interface OperatorsChange {
  /** Adds the operator, or gives the one of that name a new role, password and users. */
  put(operator: LocalOperator): void;
  /** False where there is none. */
  remove(name: string): boolean;
  lock(identity: string): void;
  /** False where it is not locked. */
  unlock(identity: string): boolean;
}

/** Hashes passwords, a few at a time. Rejects with `unavailable` where too many wait. */
export interface Passwords {
  hash(password: string): Promise<string>;
  /** Takes as long where there is no hash, and answers false. */
  verify(password: string, hash: string | undefined): Promise<boolean>;
}
