import type { AuditSink } from '../../contracts/audit.ts';
import type { ControlCommands } from '../control/control-server.ts';
import { Refusal } from '../../model/refusals.ts';
import type { Webhooks } from '../../services/webhooks/webhooks.ts';
import { answerOf, auditedCommand, textOf } from './audited-command.ts';

/** All except lists are audited. */
export const webhookCommands = (
  webhooks: Pick<Webhooks, 'deadLetters' | 'revive'> | undefined,
  audit: AuditSink | undefined,
): ControlCommands => ({
  '/webhooks/list': () => answerOf(listOf(webhooks)),
  '/webhooks/retry': auditedCommand(audit)(
    'retryWebhooks',
    { field: 'id', as: 'messageId' },
    async (body) => {
      const id = textOf(body, 'id') || undefined;
      const retried = (await webhooks?.revive(id)) ?? 0;
      if (id !== undefined && retried === 0)
        throw new Refusal('NOT_FOUND', `there is no dead letter ${id}`);
      return { retried };
    },
  ),
});

/** Omits bodies: a reader needs only the failed deliveries and their reasons. */
const listOf = async (webhooks: Pick<Webhooks, 'deadLetters'> | undefined): Promise<object> => ({
  receivers: ((await webhooks?.deadLetters()) ?? []).map(({ address, deadLetters }) => ({
    address,
    deadLetters: deadLetters.map(({ id, event, approvalId, at, attempts, problem }) => ({
      id,
      event,
      approvalId,
      at,
      attempts,
      problem,
    })),
  })),
});
