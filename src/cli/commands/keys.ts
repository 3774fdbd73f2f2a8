import { type Command, Option } from 'commander';
import { randomBytes } from 'node:crypto';
import { writeFile, access, mkdir } from 'node:fs/promises';
import type { Query } from '../client/operation-request.ts';
import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { IssuedApiKey } from '../client/wire.ts';
import { formatApiKey, newApiKeyText, toCompatibleForm } from '../../model/api-key-text.ts';
import type { Action, Actions, ServiceAction } from '../common/action.ts';
import { addConnectionOptions } from '../common/connection.ts';
import { print, say, type CliContext } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { group, leaf } from '../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../common/output.ts';
import { addPageOptions, type PageOptions, showPage } from '../common/paging.ts';
import { keyTable, shortTime } from '../show/rows.ts';
import { join } from 'node:path';
import { isDnsLabel } from '../../model/identifiers.ts';
import { readText } from '../common/document.ts';

export const keysGroup = ({ action, serviceAction }: Actions): Command =>
  group('keys', 'Lists, creates and revokes API keys', [
    listLeaf(serviceAction),
    createLeaf(serviceAction),
    deleteLeaf(serviceAction),
    deleteAllLeaf(serviceAction),
    promoteLeaf(serviceAction),
    mintLeaf(action),
  ]);

const listLeaf = (action: ServiceAction): Command =>
  addPageOptions(
    addOutputOption(
      addConnectionOptions(
        leaf({
          usage: 'list',
          summary: 'Lists your API keys, newest first, without their secrets.',
          examples: [
            'sandpool keys list',
            'sandpool keys list -o wide',
            'sandpool keys list --all --admin',
          ],
        }),
      ),
    ),
  )
    .option('--all', 'of all tenants, for an admin')
    .action(
      action(
        async ({ api, context }, _operands, options: PageOptions & { readonly all?: boolean }) => {
          const request = { limit: options.limit, offset: options.offset };
          const page = options.all
            ? await api.call('listAllApiKeys', { query: request })
            : await api.call('listApiKeys', { query: request });
          await showPage(context, options, {
            page,
            table: (items, wide) => keyTable(items, wide || options.all === true),
          });
        },
      ),
    );

interface CreateOptions extends OutputOptions {
  readonly description?: string;
  readonly expiresAt?: string;
  readonly team?: string;
  readonly user?: string;
  readonly role?: 'user' | 'admin';
  readonly to?: string;
  readonly users?: string;
  readonly gated?: boolean;
  readonly form?: 'sandpool' | 'e2b';
}

const createLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'create [name]',
        summary:
          'Creates an API key and prints it. It is printed only once, because it is not stored. ' +
          'An admin creates keys of other teams and users; that is how a tenant is added.',
        examples: [
          'sandpool keys create ci --to ci.key',
          'KEY=$(sandpool keys create)',
          'export E2B_API_KEY=$(sandpool keys create --form e2b)',
          'sandpool keys create --admin --team blue --user ada --to ada.key',
          'sandpool keys create --admin --team school --users students.txt --to keys',
        ],
      }),
    ),
  )
    .option('--description <text>', 'what it is for')
    .option('--gated', 'make the key gated: rules of the approval policy may apply to its requests')
    .option(
      '--expires-at <time>',
      "expiry in ISO 8601, UTC, such as 2030-01-31T00:00:00Z; not after your own key's " +
        'expiry. By default 90 days from now',
    )
    .option('--to <file>', 'write the key to a new file that only you can read, and print its id')
    .option(
      '--users <file>',
      'for an admin: create a key for each user in this file, one user per line; --to then ' +
        'names a folder, for one file USER.key each. - is standard input',
    )
    .option('--team <team>', 'for an admin: team of the key')
    .option('--user <user>', 'for an admin: user of the key, in the team')
    .addOption(
      new Option('--form <form>', "format of the key: every version of E2B's SDKs accepts e2b")
        .choices(['sandpool', 'e2b'])
        .default('sandpool'),
    )
    .addOption(
      new Option('--role <role>', 'for an admin: role of the key').choices(['user', 'admin']),
    )
    .action(
      action(async ({ api, context }, [name], options: CreateOptions) => {
        const { users, form, ...others } = options;
        if (users !== undefined && form === 'e2b')
          throw new CliFailure('--users cannot be used with --form');
        if (users !== undefined) {
          if (name !== undefined || options.user !== undefined || options.role !== undefined)
            throw new CliFailure('--users cannot be used with a name, --user or --role');
          await issueForUsers(api, context, { options: { ...others, users }, write: writeKey });
          return;
        }
        const made = await issue(api, typeof name === 'string' ? name : undefined, options);
        const issued = form === 'e2b' ? { ...made, apiKey: toCompatibleForm(made.apiKey) } : made;
        if (options.to !== undefined) await writeKey(options.to, issued);
        const { apiKey, ...rest } = issued;
        await show(
          context,
          options,
          options.to === undefined
            ? { value: issued, text: () => `${apiKey}\n` }
            : { value: rest, text: () => `${rest.keyId}\n` },
        );
        if (options.output === 'table' || options.output === 'wide')
          await say(
            context,
            `${issued.name}, ${issued.role} of ${issued.team}/${issued.user}, until ` +
              `${shortTime(issued.expiresAt)}`,
          );
      }),
    );

const issue = async (
  api: SandpoolClient,
  name: string | undefined,
  options: CreateOptions,
): Promise<IssuedApiKey> => {
  const { team, user, role, description, expiresAt } = options;
  const gated = options.gated ? (true as const) : undefined;
  const own = { name, description, expiresAt, gated };
  if (team === undefined && user === undefined && role === undefined)
    return await api.call('createApiKey', { body: own });
  if (team === undefined || user === undefined)
    throw new CliFailure('a key for others needs both --team and --user');
  return await api.call('createApiKeyForTenant', {
    body: { ...own, team, user, role },
  });
};

/** A key that cannot be saved would be lost, so it is revoked. */
const writeKey = async (file: string, { apiKey, keyId }: IssuedApiKey): Promise<void> => {
  await writeFile(file, `${apiKey}\n`, { mode: 0o600, flag: 'wx' }).catch((error: unknown) => {
    throw new CliFailure(
      `${file} can’t be written: ${error instanceof Error ? error.message : String(error)}`,
      [
        'the key was created but could not be saved; revoke it with: sandpool keys delete ' +
          `${keyId}`,
      ],
      { cause: error },
    );
  });
};

const deleteLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'delete <key...>',
        summary:
          'Revokes keys; they stop working at once. Name your own key by its id, or as an admin ' +
          'any key by NAMESPACE/NAME.',
        examples: [
          'sandpool keys delete 5Rj0cXvM8aTqZk2L',
          'sandpool keys delete --cascade --admin blue/ci',
        ],
      }),
    ),
  )
    .option(
      '--cascade',
      'also revoke the keys created by these keys, and the keys created by those',
    )
    .action(
      action(async ({ api, context }, [keys], options: CascadeOptions) => {
        for (const key of keys as readonly string[]) {
          const deleted = key.includes('/')
            ? await api.call('deleteApiKeyByName', {
                params: { name: key },
                query: cascadeOf(options),
              })
            : await api.call('deleteApiKey', { params: { keyId: key }, query: cascadeOf(options) });
          await show(context, options, {
            value: deleted,
            text: () =>
              `${deleted.keyId} ${deleted.status}` +
              (deleted.revoked === undefined ? '\n' : `, ${deleted.revoked} in all\n`),
          });
        }
      }),
    );

const deleteAllLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'delete-all <team> <user>',
        summary: 'Revokes all keys of a user, for an admin.',
        examples: [
          'sandpool keys delete-all --admin blue ada',
          'sandpool keys delete-all --cascade --admin blue ada',
        ],
      }),
    ),
  )
    .option(
      '--cascade',
      'also revoke keys created by these keys, and keys created by those, of any user',
    )
    .action(
      action(async ({ api, context }, [team, user], options: CascadeOptions) => {
        const deleted = await api.call('deleteApiKeysOf', {
          query: {
            team: team as string,
            user: user as string,
            ...cascadeOf(options),
          },
        });
        await show(context, options, {
          value: deleted,
          text: () => `${deleted.revoked} ${deleted.status}\n`,
        });
      }),
    );

interface CascadeOptions extends OutputOptions {
  readonly cascade?: boolean;
}

const cascadeOf = ({ cascade = false }: CascadeOptions): Query<'deleteApiKey'> =>
  cascade ? { cascade: true } : {};

const promoteLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addConnectionOptions(
      leaf({
        usage: 'promote <name>',
        summary:
          'Makes a key valid on all worker clusters, for an admin. Name the key as ' +
          'NAMESPACE/NAME, or as NAME in your own namespace.',
        examples: ['sandpool keys promote --admin blue/ci'],
      }),
    ),
  ).action(
    action(async ({ api, context }, [name], options: OutputOptions) => {
      const promoted = await api.call('promoteApiKey', { params: { name: name as string } });
      await show(context, options, {
        value: promoted,
        text: () => `${promoted.keyId} ${promoted.status}\n`,
      });
    }),
  );

const mintLeaf = (action: Action): Command =>
  leaf({
    usage: 'mint',
    summary:
      'Prints a new API key that no daemon knows, for the file admin.key in secretsDir. ' +
      'Replicas take it as the first admin key.',
    examples: ['sandpool keys mint > admin.key'],
  }).action(
    action(1, async ({ stdout }) => {
      await print(stdout, `${formatApiKey(newApiKeyText(randomBytes))}\n`);
      return 0;
    }),
  );

/** `to` is a folder. */
interface UsersOptions {
  readonly users: string;
  readonly team?: string;
  readonly to?: string;
  readonly description?: string;
  readonly expiresAt?: string;
}

/** Skips users with an existing key file, so it is safe to repeat. */
const issueForUsers = async (
  api: SandpoolClient,
  context: CliContext,
  {
    options,
    write,
  }: {
    readonly options: UsersOptions;
    readonly write: (file: string, issued: IssuedApiKey) => Promise<void>;
  },
): Promise<void> => {
  const { team, to, description, expiresAt } = options;
  if (team === undefined || to === undefined)
    throw new CliFailure('--users needs --team, and --to with a folder for the keys');
  const users = usersIn(await readText(context, options.users));
  await mkdir(to, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw new CliFailure(
      `${to} can’t be created: ${error instanceof Error ? error.message : String(error)}`,
      ['--to must name a folder here'],
    );
  });
  for (const user of users) {
    const file = join(to, `${user}.key`);
    if (await exists(file)) {
      await print(context.stdout, `${user}.key already exists\n`);
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

/** Refuses invalid names before any key is created. */
const usersIn = (text: string): readonly string[] => {
  const lines = text.split('\n').map((line, at) => ({ user: line.trim(), number: at + 1 }));
  const named = lines.filter(({ user }) => user !== '' && !user.startsWith('#'));
  for (const { user, number } of named) {
    if (!isDnsLabel(user)) {
      throw new CliFailure(`line ${number}: ${JSON.stringify(user)} is not a valid user`, [
        'a user has 1 to 63 characters of a-z, 0-9 and inner hyphens',
      ]);
    }
  }
  if (named.length === 0)
    throw new CliFailure('the file has no users', ['write one user per line']);
  return [...new Set(named.map(({ user }) => user))];
};

const exists = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );
