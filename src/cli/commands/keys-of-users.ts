import { access, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { IssuedApiKey } from '../client/wire.ts';
import { isDnsLabel } from '../../model/identifiers.ts';
import { type CliContext, print } from '../common/context.ts';
import { readText } from '../common/document.ts';
import { CliFailure } from '../common/failure.ts';

/** The options of `keys create --users`. `to` is a folder. */
export interface UsersOptions {
  readonly users: string;
  readonly team?: string;
  readonly to?: string;
  readonly description?: string;
  readonly expiresAt?: string;
}

/**
 * Makes a key for each user that a file names, one a line, and has `write` put it into `USER.key`
 * in a folder. A user whose file is there is passed over, so that the command may be repeated.
 */
export const issueForUsers = async (
  api: SandpoolClient,
  context: CliContext,
  options: UsersOptions,
  write: (file: string, issued: IssuedApiKey) => Promise<void>,
): Promise<void> => {
  const { team, to, description, expiresAt } = options;
  if (team === undefined || to === undefined)
    throw new CliFailure('--users needs --team, and --to with a folder for the keys');
  const users = usersIn(await readText(context, options.users));
  await mkdir(to, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw new CliFailure(
      `${to} can’t be made: ${error instanceof Error ? error.message : String(error)}`,
      ['--to names a folder here'],
    );
  });
  for (const user of users) {
    const file = join(to, `${user}.key`);
    if (await exists(file)) {
      await print(context.stdout, `${user}.key is there already\n`);
      continue;
    }
    const issued = await api.call('createApiKeyForTenant', {
      body: {
        team,
        user,
        description,
        expiresAt,
      },
    });
    await write(file, issued);
    await print(context.stdout, `${user}.key\n`);
  }
};

/** Refuses what can be no user before any key is made. */
const usersIn = (text: string): readonly string[] => {
  const lines = text.split('\n').map((line, at) => ({ user: line.trim(), number: at + 1 }));
  const named = lines.filter(({ user }) => user !== '' && !user.startsWith('#'));
  for (const { user, number } of named) {
    if (!isDnsLabel(user)) {
      throw new CliFailure(`line ${number}: ${JSON.stringify(user)} can be no user`, [
        'a user is 1 to 63 of a-z, 0-9 and inner hyphens',
      ]);
    }
  }
  if (named.length === 0)
    throw new CliFailure('the file names no users', ['it should have one a line']);
  return [...new Set(named.map(({ user }) => user))];
};

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );
