import { randomUUID } from 'node:crypto';
import type { AuditSink } from '../contracts/audit.ts';
import type { ControlCommands } from '../control/control-server.ts';
import { errorAnswer } from '../http/router/error-table.ts';
import { Refusal } from '../model/refusals.ts';
import type { OperatorCommands } from '../operations/console/operator-commands.ts';

interface Deps {
  /** Makes a link, for the operator if one is named. */
  readonly linkFor: (as: string | undefined) => Promise<string>;
  readonly changes: OperatorCommands;
  readonly audit: AuditSink | undefined;
}

/** Serves what is asked over the control socket about the console; all but lists is audited. */
export const controlCommands = ({ linkFor, changes, audit }: Deps): ControlCommands => {
  const textOf = (body: unknown, field: string): string => {
    const value = (body as Readonly<Record<string, unknown>> | null)?.[field];
    return typeof value === 'string' ? value : '';
  };
  const command =
    (operation: string, target: string | undefined, run: (body: unknown) => Promise<object>) =>
    async (body: unknown) => {
      const answer = await run(body).then(
        (done) => ({ status: 200, body: done }),
        (error: unknown) => {
          if (!(error instanceof Refusal)) throw error;
          const { status, body: said } = errorAnswer(error, '');
          return { status, body: said };
        },
      );
      audit?.note({
        requestId: randomUUID(),
        via: 'control-socket',
        operation,
        status: answer.status,
        ...(target === undefined
          ? {}
          : { target: { operator: textOf(body, target).slice(0, 256) } }),
      });
      return answer;
    };
  return {
    '/console/login': command('printConsoleLink', 'as', async (body) => ({
      url: await linkFor(textOf(body, 'as') || undefined),
    })),
    '/operators/list': async () => ({ status: 200, body: changes.list() }),
    '/operators/add': command('addOperator', 'name', (body) => changes.add(body)),
    '/operators/remove': command('removeOperator', 'name', (body) =>
      changes.remove(textOf(body, 'name')),
    ),
    '/operators/lock': command('lockOperator', 'identity', (body) =>
      changes.lock(textOf(body, 'identity')),
    ),
    '/operators/unlock': command('unlockOperator', 'identity', (body) =>
      changes.unlock(textOf(body, 'identity')),
    ),
  };
};
