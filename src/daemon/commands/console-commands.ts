import type { AuditSink } from '../../contracts/audit.ts';
import type { ControlCommands } from '../control/control-server.ts';
import type { OperatorCommands } from '../../services/console/operator-commands.ts';
import type { SessionCommands } from '../../services/console/session-commands.ts';
import { answerOf, auditedCommand, textOf } from './audited-command.ts';

interface Deps {
  readonly linkFor: (as: string | undefined) => Promise<string>;
  readonly changes: OperatorCommands;
  readonly sessions: SessionCommands;
  readonly audit: AuditSink | undefined;
}

/** All except lists are audited. */
export const controlCommands = ({ linkFor, changes, sessions, audit }: Deps): ControlCommands => {
  const command = auditedCommand(audit);
  const operator = (field: string) => ({ field, as: 'operator' });
  return {
    '/console/login': command('printConsoleLink', operator('as'), async (body) => ({
      url: await linkFor(textOf(body, 'as') || undefined),
    })),
    '/console/sessions/list': () => answerOf(sessions.list()),
    '/console/sessions/end': command(
      'endConsoleSession',
      { field: 'sessionId', as: 'sessionId' },
      (body) => sessions.end(textOf(body, 'sessionId')),
    ),
    '/console/sessions/end-all': command('endConsoleSessions', operator('operator'), (body) =>
      sessions.endAll(textOf(body, 'operator') || undefined),
    ),
    '/operators/list': async () => ({ status: 200, body: changes.list() }),
    '/operators/add': command('addOperator', operator('name'), (body) => changes.add(body)),
    '/operators/remove': command('removeOperator', operator('name'), (body) =>
      changes.remove(textOf(body, 'name')),
    ),
    '/operators/lock': command('lockOperator', operator('identity'), (body) =>
      changes.lock(textOf(body, 'identity')),
    ),
    '/operators/unlock': command('unlockOperator', operator('identity'), (body) =>
      changes.unlock(textOf(body, 'identity')),
    ),
  };
};
