import type { Command } from 'commander';
import type { Action } from '../../common/action.ts';
import { print } from '../../common/context.ts';
import { CliFailure } from '../../common/failure.ts';
import { group, leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { table } from '../../show/table.ts';
import { askLocalDaemon, withPlace, type Place } from './local-daemon.ts';

interface ShownReceiver {
  readonly address: string;
  readonly deadLetters: readonly {
    readonly id: string;
    readonly at: number;
    readonly attempts: number;
    readonly problem: string;
  }[];
}

export const webhooksGroup = (action: Action): Command =>
  group(
    'webhooks',
    'Lists messages about approvals that could not be delivered, and sends them again',
    [listLeaf(action), retryLeaf(action)],
  );

const listLeaf = (action: Action): Command =>
  withPlace(
    addOutputOption(
      leaf({
        usage: 'list',
        summary: 'Lists the dead letters of each webhook on all replicas, newest first.',
        examples: ['sandpool webhooks list', 'sandpool webhooks list -o json'],
      }),
    ),
  ).action(
    action(1, async (context, _operands, options: Place & OutputOptions) => {
      const value = await askLocalDaemon(context, options, { path: '/webhooks/list', body: {} });
      const receivers = (value['receivers'] as readonly ShownReceiver[]).map(
        ({ address, deadLetters }) => ({
          address,
          deadLetters: deadLetters.map((letter) => ({
            ...letter,
            at: new Date(letter.at).toISOString(),
          })),
        }),
      );
      const rows = receivers.flatMap(({ address, deadLetters }) =>
        deadLetters.map(({ id, at, attempts, problem }) => [
          id,
          address,
          at,
          String(attempts),
          problem,
        ]),
      );
      await show(context, options, {
        value: { receivers },
        text: () =>
          rows.length === 0
            ? 'no dead letters\n'
            : table(['MESSAGE', 'WEBHOOK', 'GIVEN UP', 'ATTEMPTS', 'PROBLEM'], rows),
      });
      return 0;
    }),
  );

const retryLeaf = (action: Action): Command =>
  withPlace(
    leaf({
      usage: 'retry [message]',
      summary: 'Sends a dead letter again to each webhook that did not accept it.',
      examples: [
        'sandpool webhooks retry 01a21a8e-a887-7738-8b09-9f212a599a4d.requested',
        'sandpool webhooks retry --all',
      ],
    }).option('--all', 'all dead letters'),
  ).action(
    action(1, async (context, [message], options: Place & { readonly all?: boolean }) => {
      if ((message === undefined) === (options.all !== true))
        throw new CliFailure('name a message, or use --all', [
          'list the messages: sandpool webhooks list',
        ]);
      const { retried } = await askLocalDaemon(context, options, {
        path: '/webhooks/retry',
        body: {
          id: message,
        },
      });
      await print(context.stdout, `sent again: ${String(retried)}\n`);
      return 0;
    }),
  );
