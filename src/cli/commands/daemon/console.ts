import type { Command } from 'commander';
import type { Action } from '../../common/action.ts';
import { print } from '../../common/context.ts';
import { group, leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';
import { table } from '../../show/table.ts';
import { askLocalDaemon, withPlace, type Place } from './local-daemon.ts';

interface ShownSession {
  readonly sessionId: string;
  readonly operator: string;
  readonly name: string;
  readonly method: string;
  readonly address: string;
  readonly openedAt: number;
  readonly seenAt: number;
  readonly endsAt: number;
}

export const consoleGroup = (action: Action): Command =>
  group('console', 'Opens the console, where people decide on approvals, and lists its sessions', [
    loginLeaf(action),
    sessionsLeaf(action),
    endLeaf(action),
    endAllLeaf(action),
  ]);

const loginLeaf = (action: Action): Command =>
  withPlace(
    leaf({
      usage: 'login',
      summary:
        'Prints a link that logs one browser in to the console of the running local daemon. ' +
        'The link works once, within five minutes.',
      examples: ['sandpool console login', 'sandpool console login --as ada'],
    }).option('--as <operator>', 'log in as this operator, if there are operators'),
  ).action(
    action(1, async (context, _operands, options: Place & { readonly as?: string }) => {
      const { url } = await askLocalDaemon(context, options, {
        path: '/console/login',
        body: { as: options.as },
      });
      await print(context.stdout, `${String(url)}\n`);
      return 0;
    }),
  );

const sessionsLeaf = (action: Action): Command =>
  withPlace(
    addOutputOption(
      leaf({
        usage: 'sessions',
        summary: 'Lists who is logged in to the console, newest session first.',
        examples: ['sandpool console sessions', 'sandpool console sessions -o json'],
      }),
    ),
  ).action(
    action(1, async (context, _operands, options: Place & OutputOptions) => {
      const value = await askLocalDaemon(context, options, {
        path: '/console/sessions/list',
        body: {},
      });
      const sessions = value['sessions'] as readonly ShownSession[];
      const items = sessions.map(({ openedAt, seenAt, endsAt, ...session }) => ({
        ...session,
        openedAt: new Date(openedAt).toISOString(),
        seenAt: new Date(seenAt).toISOString(),
        endsAt: new Date(endsAt).toISOString(),
      }));
      await show(context, options, {
        value: { sessions: items },
        text: () =>
          items.length === 0
            ? 'nobody is logged in\n'
            : table(
                ['SESSION', 'OPERATOR', 'BY', 'FROM', 'LOGGED IN', 'LAST USED', 'ENDS'],
                items.map((each) => [
                  each.sessionId,
                  each.operator,
                  each.method,
                  each.address,
                  each.openedAt,
                  each.seenAt,
                  each.endsAt,
                ]),
              ),
      });
      return 0;
    }),
  );

const endLeaf = (action: Action): Command =>
  withPlace(
    leaf({
      usage: 'end-session <session>',
      summary: 'Ends one session, on every replica at once.',
      examples: ['sandpool console end-session i2vOq1l7mTz5B0c3kqH0Qn8m1b6V4JpV5v0S8hXx2Zs'],
    }),
  ).action(
    action(1, async (context, [session], options: Place) => {
      await askLocalDaemon(context, options, {
        path: '/console/sessions/end',
        body: {
          sessionId: String(session),
        },
      });
      await print(context.stdout, `${String(session)} has ended\n`);
      return 0;
    }),
  );

const endAllLeaf = (action: Action): Command =>
  withPlace(
    leaf({
      usage: 'end-sessions',
      summary: 'Ends all sessions, or all sessions of one person.',
      examples: ['sandpool console end-sessions', 'sandpool console end-sessions --of ada'],
    }).option('--of <identity>', 'sessions of this operator, or of this OpenID Connect identity'),
  ).action(
    action(1, async (context, _operands, options: Place & { readonly of?: string }) => {
      const { sessionsEnded } = await askLocalDaemon(context, options, {
        path: '/console/sessions/end-all',
        body: {
          operator: options.of,
        },
      });
      await print(context.stdout, `sessions ended: ${String(sessionsEnded)}\n`);
      return 0;
    }),
  );
