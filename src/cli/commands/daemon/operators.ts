import { type Command, Option } from 'commander';
import type { Action } from '../../common/action.ts';
import { print } from '../../common/context.ts';
import { CliFailure } from '../../common/failure.ts';
import { group, leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { readPassword } from '../../terminal/password.ts';
import { askLocalDaemon, withPlace, type Place } from './local-daemon.ts';

interface NewOperator extends Place {
  readonly role: string;
  readonly user: readonly string[];
}

interface ShownOperators {
  readonly operators: readonly {
    readonly name: string;
    readonly role: string;
    readonly users: readonly string[];
    readonly locked: boolean;
  }[];
  readonly locked: readonly string[];
}

export const operatorsGroup = (action: Action): Command =>
  group('operators', 'Manages the people who log in to the console with a password', [
    addLeaf(action),
    listLeaf(action),
    changeLeaf(action, {
      name: 'lock',
      summary:
        'Locks a person out of the console and ends their sessions: an operator by name, or ' +
        'anyone by the identity that sessions show.',
      operand: 'identity',
      examples: [
        'sandpool operators lock ada',
        'sandpool operators lock "https://login.example.com#248289761001"',
      ],
      done: 'is locked',
    }),
    changeLeaf(action, {
      name: 'unlock',
      summary: 'Allows a locked person to log in again.',
      operand: 'identity',
      examples: ['sandpool operators unlock ada'],
      done: 'is no longer locked',
    }),
    changeLeaf(action, {
      name: 'remove',
      summary: 'Removes an operator and ends their sessions.',
      operand: 'name',
      examples: ['sandpool operators remove ada'],
      done: 'is removed',
    }),
    entryLeaf(action),
  ]);

const addLeaf = (action: Action): Command =>
  withPlace(
    withRole(
      leaf({
        usage: 'add <name>',
        summary:
          "Adds an operator, or changes an operator's password, role and users. Asks for the " +
          'password on the terminal, or else reads it from standard input.',
        examples: [
          'sandpool operators add ada',
          'sandpool operators add ada --role admin --user ada-ci < password.txt',
        ],
      }),
    ),
  ).action(
    action(1, async (context, [name], options: NewOperator) => {
      const { replaced } = await askLocalDaemon(context, options, {
        path: '/operators/add',
        body: {
          name: String(name),
          role: options.role,
          users: options.user,
          password: await readPassword(context),
        },
      });
      await print(
        context.stdout,
        `${String(name)} is ${replaced === true ? 'changed' : 'added'}\n`,
      );
      return 0;
    }),
  );

const listLeaf = (action: Action): Command =>
  withPlace(
    addOutputOption(
      leaf({
        usage: 'list',
        summary: 'Lists the operators with a password, and other people who are locked out.',
        examples: ['sandpool operators list', 'sandpool operators list -o json'],
      }),
    ),
  ).action(
    action(1, async (context, _operands, options: Place & OutputOptions) => {
      const value = (await askLocalDaemon(context, options, {
        path: '/operators/list',
        body: {},
      })) as unknown as ShownOperators;
      await show(context, options, { value, text: () => tableOf(value) });
      return 0;
    }),
  );

const tableOf = ({ operators, locked }: ShownOperators): string => {
  if (operators.length + locked.length === 0)
    return 'no operators yet; add one: sandpool operators add NAME\n';
  const rows = [
    ['NAME', 'ROLE', 'USERS', 'STATUS'],
    ...operators.map(({ name, role, users, locked: isLocked }) => [
      name,
      role,
      [name, ...users].join(','),
      isLocked ? 'locked' : 'active',
    ]),
    ...locked.map((identity) => [identity, '-', '-', 'locked']),
  ];
  const widths = [0, 1, 2].map((at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, at) => cell.padEnd(widths[at] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
};

interface Change {
  readonly name: string;
  readonly summary: string;
  readonly operand: string;
  readonly examples: readonly string[];
  readonly done: string;
}

const changeLeaf = (action: Action, { name, summary, operand, examples, done }: Change): Command =>
  withPlace(leaf({ usage: `${name} <${operand}>`, summary, examples })).action(
    action(1, async (context, [whom], options: Place) => {
      const { sessionsEnded } = await askLocalDaemon(context, options, {
        path: `/operators/${name}`,
        body: {
          [operand]: String(whom),
        },
      });
      const ended = typeof sessionsEnded === 'number' ? `; sessions ended: ${sessionsEnded}` : '';
      await print(context.stdout, `${String(whom)} ${done}${ended}\n`);
      return 0;
    }),
  );

const entryLeaf = (action: Action): Command =>
  withRole(
    leaf({
      usage: 'entry <name>',
      summary:
        'Prints an operator in the form of operators.json, for the Secret of replicas on ' +
        'Kubernetes. Sends nothing to a daemon.',
      examples: ['sandpool operators entry ada --role operator < password.txt'],
    }),
  ).action(
    action(1, async (context, [name], options: Omit<NewOperator, 'dataDir'>) => {
      const { operatorEntry } = await import('../../../services/identity/operator-entry.ts');
      const entry = await operatorEntry({
        name: String(name),
        role: options.role,
        users: options.user,
        password: await readPassword(context),
        addedAt: new Date().toISOString(),
      }).catch((error: unknown) => {
        throw new CliFailure(error instanceof Error ? error.message : String(error));
      });
      await print(context.stdout, `${JSON.stringify({ operators: [entry] }, undefined, 2)}\n`);
      return 0;
    }),
  );

const withRole = (command: Command): Command =>
  command
    .addOption(
      new Option('--role <role>', 'permissions of the operator')
        .choices(['viewer', 'operator', 'admin'])
        .default('operator'),
    )
    .option(
      '--user <user>',
      'another user whose API keys belong to the person; may be repeated',
      (user: string, users: readonly string[]) => [...users, user],
      [],
    );
