import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import type { LocalOperator, Operators, OperatorsChange } from '../../contracts/operators.ts';
import { unavailable } from '../../model/refusals.ts';
import { OperatorName, OperatorRole, OperatorUsers } from './operator-entry.ts';
import { writePrivate } from '../../lib/private-file.ts';

const MOST_BYTES = 1024 * 1024;
const MOST_OPERATORS = 256;
const MOST_LOCKED = 1_000;

export const OperatorEntry = z.strictObject({
  name: OperatorName,
  role: OperatorRole,
  passwordHash: z.string().max(512).startsWith('$argon2id$'),
  users: OperatorUsers.default([]),
  addedAt: z.string().max(64).default(''),
});

const OperatorsDocument = z.strictObject({
  operators: z
    .array(OperatorEntry)
    .max(MOST_OPERATORS)
    .refine((all) => new Set(all.map(({ name }) => name)).size === all.length)
    .default([]),
  locked: z.array(z.string().min(1).max(1_024)).max(MOST_LOCKED).default([]),
});

type Document = z.infer<typeof OperatorsDocument>;

/** A JSON file, which is read again after a change. A missing file means no operators. */
export class OperatorsFile implements Operators, OperatorsChange {
  readonly #path: string;
  #known: { readonly mark: string; readonly document: Document } | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  find(name: string): LocalOperator | undefined {
    return this.list().find((operator) => operator.name === name);
  }

  list(): readonly LocalOperator[] {
    return this.#document().operators;
  }

  locked(): readonly string[] {
    return this.#document().locked;
  }

  isLocked(identity: string): boolean {
    return this.locked().includes(identity);
  }

  put(operator: LocalOperator): void {
    const { operators, locked } = this.#document();
    this.#write({
      operators: [
        ...operators.filter(({ name }) => name !== operator.name),
        { ...operator, users: [...operator.users] },
      ],
      locked,
    });
  }

  remove(name: string): boolean {
    const { operators, locked } = this.#document();
    const kept = operators.filter((operator) => operator.name !== name);
    if (kept.length === operators.length) return false;
    this.#write({ operators: kept, locked });
    return true;
  }

  lock(identity: string): void {
    const { operators, locked } = this.#document();
    if (!locked.includes(identity)) this.#write({ operators, locked: [...locked, identity] });
  }

  unlock(identity: string): boolean {
    const { operators, locked } = this.#document();
    if (!locked.includes(identity)) return false;
    this.#write({ operators, locked: locked.filter((one) => one !== identity) });
    return true;
  }

  #write(document: Document): void {
    const parsed = OperatorsDocument.safeParse(document);
    if (!parsed.success) throw unavailable(`${this.#path} is full`);
    writePrivate(this.#path, `${JSON.stringify(parsed.data, undefined, 2)}\n`);
    this.#known = undefined;
  }

  /** The file is replaced atomically, so a read sees all of the old or all of the new content. */
  #document(): Document {
    const stat = statOf(this.#path);
    if (!stat) return { operators: [], locked: [] };
    const mark = `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeNs}`;
    if (this.#known?.mark === mark) return this.#known.document;
    if (stat.size > MOST_BYTES) throw unreadable(this.#path, 'is too long');
    const document = parse(this.#path);
    this.#known = { mark, document };
    return document;
  }
}

const statOf = (path: string) => {
  try {
    return statSync(path, { throwIfNoEntry: false, bigint: true });
  } catch {
    throw unreadable(path, 'can’t be read');
  }
};

const parse = (path: string): Document => {
  let given: unknown;
  try {
    given = JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    throw unreadable(path, 'is not JSON, or can’t be read');
  }
  const result = OperatorsDocument.safeParse(given);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw unreadable(path, `is wrong at ${issue?.path.join('.') ?? ''}`);
};

const unreadable = (path: string, why: string) =>
  unavailable(`nobody can log in: ${path} ${why}`, 60);
