import { randomUUID } from 'node:crypto';
import type { AuditSink } from '../../contracts/audit.ts';
import type { ControlCommands } from '../control/control-server.ts';
import { errorAnswer } from '../../http/reply/error-table.ts';
import { Refusal } from '../../model/refusals.ts';

/** Empty if the field is not text. */
export const textOf = (body: unknown, field: string): string => {
  const value = (body as Readonly<Record<string, unknown>> | null)?.[field];
  return typeof value === 'string' ? value : '';
};

/**
 * The audit records the body's field `target` under the name `as`. Refusals get the API's answers.
 */
export const auditedCommand =
  (audit: AuditSink | undefined) =>
  (
    operation: string,
    target: { readonly field: string; readonly as: string } | undefined,
    run: (body: unknown) => Promise<object>,
  ): ControlCommands[string] =>
  async (body) => {
    const answer = await answerOf(run(body));
    audit?.note({
      requestId: randomUUID(),
      via: 'control-socket',
      operation,
      status: answer.status,
      target:
        target === undefined
          ? undefined
          : { [target.as]: textOf(body, target.field).slice(0, 256) },
    });
    return answer;
  };

export const answerOf = (
  asked: Promise<object>,
): Promise<{ readonly status: number; readonly body: object }> =>
  asked.then(
    (done) => ({ status: 200, body: done }),
    (error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
      const { status, body: said } = errorAnswer(error, '');
      return { status, body: said };
    },
  );
