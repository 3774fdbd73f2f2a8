import { z } from 'zod';
import type { LocalOperator } from '../../contracts/operators.ts';
import { OWNER } from '../../model/console-person.ts';
import { isDnsLabel } from '../../model/identifiers.ts';
import { invalidArgument } from '../../model/refusals.ts';
import { argon2Passwords } from './passwords.ts';

const LEAST_PASSWORD = 12;
const MOST_PASSWORD = 256;
const MOST_USERS = 32;

export const OperatorName = z
  .string('must be text')
  .refine((name) => isDnsLabel(name) && name !== OWNER, 'must be a DNS-1123 label, and not owner');

export const OperatorRole = z.enum(
  ['viewer', 'operator', 'admin'],
  'must be viewer, operator or admin',
);

export const OperatorUsers = z
  .array(z.string().refine(isDnsLabel, 'must be DNS-1123 labels'))
  .max(MOST_USERS, `must be at most ${MOST_USERS}`);

const NewOperator = z.strictObject({
  name: OperatorName,
  role: OperatorRole,
  users: OperatorUsers,
  password: z
    .string('must be text')
    .min(LEAST_PASSWORD, `must have at least ${LEAST_PASSWORD} characters`)
    .max(MOST_PASSWORD, `must have at most ${MOST_PASSWORD} characters`),
  addedAt: z.string(),
});

export const operatorEntry = async (
  given: unknown,
  passwords = argon2Passwords(),
): Promise<LocalOperator> => {
  const parsed = NewOperator.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw invalidArgument(issue?.path.join('.') ?? '', issue?.message ?? 'is wrong');
  }
  const { password, ...operator } = parsed.data;
  return { ...operator, passwordHash: await passwords.hash(password) };
};
